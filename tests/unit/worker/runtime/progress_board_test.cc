#include "worker/runtime/progress_board.h"

#include <gtest/gtest.h>

namespace autoloco::worker {
namespace {

class HandClock final : public Clock {
 public:
  Instant Now() const override { return now; }
  Instant now = absl::UnixEpoch() + absl::Hours(1);
};

class ProgressBoardTest : public ::testing::Test {
 protected:
  void Step(absl::Duration duration) {
    clock_.now += duration;
    board_.StepDone({.loss = 2.5, .gradient_norm = 1, .learning_rate = 0.1, .tokens = 100, .duration = duration});
  }
  HandClock clock_;
  ProgressBoard board_{&clock_};
};

TEST_F(ProgressBoardTest, CountsTheStepsOfTheInterval) {
  board_.Ready(100);
  board_.IntervalBegan({.round = 3, .inner_steps = 20, .first_inner_step = 60});
  Step(absl::Seconds(1));
  Step(absl::Seconds(1));
  const ProgressNumbers numbers = board_.Read();
  EXPECT_EQ(numbers.round, 3u);
  EXPECT_EQ(numbers.steps_done, 2u);
  EXPECT_EQ(numbers.steps_target, 20u);
  EXPECT_EQ(numbers.inner_steps_done, 62u);
  EXPECT_EQ(numbers.loss, 2.5);
  EXPECT_DOUBLE_EQ(numbers.tokens_per_second, 100);
  board_.IntervalBegan({.round = 4, .inner_steps = 10, .first_inner_step = 80});
  EXPECT_EQ(board_.Read().steps_done, 0u);
}

TEST_F(ProgressBoardTest, ComputeShareIsOfTheTimeSinceReady) {
  EXPECT_EQ(board_.Read().compute_share, 0);
  clock_.now += absl::Seconds(50);  // preparing does not count
  board_.Ready(100);
  board_.IntervalBegan({.round = 0, .inner_steps = 20});
  Step(absl::Seconds(2));
  board_.Computed(absl::Seconds(1));
  clock_.now += absl::Seconds(4);
  EXPECT_DOUBLE_EQ(board_.Read().compute_share, 0.5);
}

TEST_F(ProgressBoardTest, SpeedIsAMovingAverage) {
  board_.Ready(100);
  board_.IntervalBegan({.round = 0, .inner_steps = 20});
  Step(absl::Seconds(1));
  Step(absl::Milliseconds(500));
  EXPECT_DOUBLE_EQ(board_.Read().tokens_per_second, 100 + 100.0 / 16);
}

TEST_F(ProgressBoardTest, WhatTheLastDeltaCost) {
  board_.DeltaEncoded({.values = 80, .bytes = 20, .squared_signal = 100, .squared_error = 10});
  EXPECT_EQ(board_.Read().bits_per_value, 2);
  EXPECT_DOUBLE_EQ(board_.Read().snr_db.value(), 10);
  board_.DeltaEncoded({.values = 80, .bytes = 320, .squared_signal = 100, .squared_error = 0});
  EXPECT_EQ(board_.Read().bits_per_value, 32);
  EXPECT_EQ(board_.Read().snr_db, std::nullopt);
}

TEST_F(ProgressBoardTest, TimeLeftFollowsThePaceSinceTheFirstStep) {
  board_.Ready(100);
  clock_.now += absl::Seconds(30);
  board_.IntervalBegan({.round = 2, .inner_steps = 20, .first_inner_step = 40});  // joined late
  EXPECT_EQ(board_.Read().time_left, std::nullopt);
  for (int i = 0; i < 20; ++i) Step(absl::Seconds(1));
  clock_.now += absl::Seconds(20);  // pushing, pulling
  EXPECT_EQ(board_.Read().time_left, absl::Seconds(80));
}

}  // namespace
}  // namespace autoloco::worker
