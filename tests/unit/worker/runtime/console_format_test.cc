#include "worker/runtime/console_format.h"

#include <gtest/gtest.h>

namespace autoloco::worker {
namespace {

TEST(ConsoleFormatTest, ShortNumbers) {
  EXPECT_EQ(ShortNumber(0), "0");
  EXPECT_EQ(ShortNumber(842.4), "842");
  EXPECT_EQ(ShortNumber(1000), "1.00k");
  EXPECT_EQ(ShortNumber(12345), "12.3k");
  EXPECT_EQ(ShortNumber(345678), "346k");
  EXPECT_EQ(ShortNumber(4.56e6), "4.56M");
  EXPECT_EQ(ShortNumber(7e9), "7.00G");
}

TEST(ConsoleFormatTest, ShortDurations) {
  EXPECT_EQ(ShortDuration(absl::Seconds(-3)), "0s");
  EXPECT_EQ(ShortDuration(absl::Milliseconds(42900)), "42s");
  EXPECT_EQ(ShortDuration(absl::Seconds(192)), "3m12s");
  EXPECT_EQ(ShortDuration(absl::Minutes(307)), "5h07m");
  EXPECT_EQ(ShortDuration(absl::Hours(51)), "2d03h");
}

TEST(ConsoleFormatTest, Bars) {
  EXPECT_EQ(ProgressBar(0, 25, 10), "[..........]");
  EXPECT_EQ(ProgressBar(13, 25, 10), "[#####.....]");
  EXPECT_EQ(ProgressBar(25, 25, 10), "[##########]");
  EXPECT_EQ(ProgressBar(30, 25, 10), "[##########]");
  EXPECT_EQ(ProgressBar(1, 0, 10), "[..........]");
}

TEST(ConsoleFormatTest, TheWholeLine) {
  ProgressNumbers numbers;
  EXPECT_EQ(LiveLine(numbers, 200), "round 0 joining  computing 0%");
  numbers = {.phase = WorkerPhase::kTraining,
             .round = 12,
             .steps_done = 13,
             .steps_target = 25,
             .inner_steps_done = 313,
             .inner_steps_total = 600,
             .loss = 2.34567,
             .tokens_per_second = 12345,
             .compute_share = 0.874,
             .bits_per_value = 1.614,
             .snr_db = 7.32,
             .time_left = absl::Seconds(192)};
  EXPECT_EQ(LiveLine(numbers, 200),
            "round 12 training [##########..........] 13/25  loss 2.346  12.3k tok/s  computing 87%  sent 1.61 "
            "bits 7.3 dB  left 3m12s");
}

TEST(ConsoleFormatTest, IsCutToTheTerminal) {
  EXPECT_EQ(LiveLine(ProgressNumbers{}, 7), "round 0");
  EXPECT_EQ(LiveLine(ProgressNumbers{}, -1), "");
}

}  // namespace
}  // namespace autoloco::worker
