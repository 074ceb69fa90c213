#include "worker/runtime/console.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/clock.h"

namespace autoloco::worker {
namespace {

TEST(ConsoleTest, AnIdleConsoleAddsNothingToTheLog) {
  ProgressBoard board(MonotonicClock());
  ::testing::internal::CaptureStderr();
  {
    const Console console({.terminal = false, .pause = absl::Hours(1)}, &board);
    Log(LogLevel::kInfo, "hello").Add("round", 1);
  }
  const std::string written = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(written.find("INFO hello round=1\n"), std::string::npos);
  EXPECT_EQ(written.find("progress"), std::string::npos);
  EXPECT_EQ(written.find('\x1b'), std::string::npos);
}

TEST(ConsoleTest, ProgressAsALogLine) {
  ::testing::internal::CaptureStderr();
  LogProgress({.phase = WorkerPhase::kTraining,
               .round = 12,
               .steps_done = 13,
               .steps_target = 25,
               .inner_steps_done = 313,
               .inner_steps_total = 600,
               .loss = 2.5,
               .tokens_per_second = 12345,
               .compute_share = 0.875,
               .time_left = absl::Seconds(192)});
  EXPECT_NE(::testing::internal::GetCapturedStderr().find(
                " INFO progress phase=training round=12 step=13 steps=25 inner_step=313 loss=2.5"
                " tokens_per_second=12345 compute_share=0.875 left=3m12s\n"),
            std::string::npos);
}

TEST(ConsoleTest, OnATerminalTheLineGivesWayToTheLog) {
  ProgressBoard board(MonotonicClock());
  ::testing::internal::CaptureStderr();
  {
    const Console console({.terminal = true, .pause = absl::Hours(1)}, &board);
    Log(LogLevel::kInfo, "hello");
  }
  const std::string written = ::testing::internal::GetCapturedStderr();
  const std::string live = "round 0 joining  computing 0%";
  const std::size_t drawn = written.find("\r\x1b[K" + live);
  ASSERT_NE(drawn, std::string::npos);
  const std::size_t log = written.find("INFO hello\n", drawn);
  ASSERT_NE(log, std::string::npos);
  // Wiped before the log line, drawn again after it, wiped at the end.
  EXPECT_NE(written.substr(drawn + live.size(), log - drawn - live.size()).find("\r\x1b[K"), std::string::npos);
  EXPECT_EQ(written.substr(log + 11, live.size()), live);
  EXPECT_EQ(written.substr(written.size() - 4), "\r\x1b[K");
}

}  // namespace
}  // namespace autoloco::worker
