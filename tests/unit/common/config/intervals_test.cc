#include "common/config/intervals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace autoloco {
namespace {

using ::testing::ElementsAre;

TEST(IntervalsTest, LimitsFollowTheReferenceWhereTheyAreNotGiven) {
  v1::IntervalConfig interval;
  interval.set_steps(25);
  EXPECT_EQ(ToStepLimits(interval).least, 12u);
  EXPECT_EQ(ToStepLimits(interval).most, 200u);
  interval.set_steps(1);
  EXPECT_EQ(ToStepLimits(interval).least, 1u);
  interval.set_steps_min(7);
  interval.set_steps_max(9);
  EXPECT_EQ(ToStepLimits(interval).least, 7u);
  EXPECT_EQ(ToStepLimits(interval).most, 9u);
}

TEST(IntervalsTest, ReadsLists) {
  EXPECT_THAT(*ParseIntervals(""), ElementsAre());
  EXPECT_THAT(*ParseIntervals("20"), ElementsAre(20));
  EXPECT_THAT(*ParseIntervals("20x3,25,30x1"), ElementsAre(20, 20, 20, 25, 30));
}

TEST(IntervalsTest, RefusesWhatIsNone) {
  for (const char* text : {"0", "20,", ",", "x3", "20x", "20x1000001", "20x600000,21x600000", "-1", "99999999999", "a"}) {
    EXPECT_EQ(ParseIntervals(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace autoloco
