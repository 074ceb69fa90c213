#include "server/rpc/open_calls.h"

#include <gtest/gtest.h>

#include <thread>

namespace autoloco::server {
namespace {

TEST(OpenCallsTest, WaitsForTheLastOne) {
  OpenCalls calls(MonotonicClock());
  EXPECT_TRUE(calls.WaitUntilNone(absl::ZeroDuration()));
  calls.Add();
  calls.Add();
  EXPECT_FALSE(calls.WaitUntilNone(absl::ZeroDuration()));
  calls.Remove();
  EXPECT_FALSE(calls.WaitUntilNone(absl::ZeroDuration()));
  std::thread other([&calls] { calls.Remove(); });
  EXPECT_TRUE(calls.WaitUntilNone(absl::Seconds(60)));
  other.join();
}

}  // namespace
}  // namespace autoloco::server
