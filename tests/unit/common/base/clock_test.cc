#include "common/base/clock.h"

#include "gtest/gtest.h"

namespace autoloco {
namespace {

TEST(ClockTest, MonotonicClockNeverGoesBack) {
  const Clock* const clock = MonotonicClock();
  EXPECT_EQ(clock, MonotonicClock());
  const Instant first = clock->Now();
  Instant last = first;
  for (int i = 0; i < 1'000'000 && last == first; ++i) {
    const Instant now = clock->Now();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_GT(last, first);
}

}  // namespace
}  // namespace autoloco
