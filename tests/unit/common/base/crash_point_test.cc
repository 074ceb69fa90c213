#include "common/base/crash_point.h"

#include <csignal>
#include <cstdlib>

#include "gtest/gtest.h"

namespace autoloco {
namespace {

// The process ends by SIGKILL, or with `code` where it gets past the place.
void PassThreeTimes(const char* specification, int code) {
  if (!ArmCrashPoint(specification).ok()) _exit(99);
  for (int i = 0; i < 3; ++i) CrashPoint("place");
  CrashPoint("place", "kind");
  _exit(code);
}

TEST(CrashPointTest, RefusesWhatIsNoPlace) {
  for (const char* bad : {"", ":1", "place:", "place:0", "place:-1", "place:x", "place:1:2"}) {
    EXPECT_EQ(ArmCrashPoint(bad).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(CrashPointTest, NothingHappensWhereNothingIsArmed) {
  CrashPoint("place");
  CrashPoint("place", "kind");
}

TEST(CrashPointDeathTest, KillsAtTheNamedPass) {
  EXPECT_EXIT(PassThreeTimes("place", 1), ::testing::KilledBySignal(SIGKILL), "crash_point name=place");
  EXPECT_EXIT(PassThreeTimes("place:3", 2), ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(PassThreeTimes("place:4", 3), ::testing::ExitedWithCode(3), "");
  EXPECT_EXIT(PassThreeTimes("elsewhere", 4), ::testing::ExitedWithCode(4), "");
  EXPECT_EXIT(PassThreeTimes("place_kind", 5), ::testing::KilledBySignal(SIGKILL), "crash_point name=place_kind");
}

}  // namespace
}  // namespace autoloco
