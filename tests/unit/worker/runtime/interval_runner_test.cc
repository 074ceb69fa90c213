#include "worker/runtime/interval_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace autoloco::worker {
namespace {

using ::testing::ElementsAre;

// Remembers what it was asked to do; step i has loss i and gradient norm 2 i.
class RecordingTrainer final : public Trainer {
 public:
  const Layout& layout() const override { return layout_; }
  absl::Status SetParameters(std::span<const float>) override { return absl::OkStatus(); }
  absl::Status GetParameters(std::span<float>) override { return absl::OkStatus(); }
  absl::StatusOr<StepResult> Step(const TokenBatch& batch, double learning_rate) override {
    if (fail) return absl::InternalError("engine");
    batches.emplace_back(batch.tokens.begin(), batch.tokens.end());
    rates.push_back(learning_rate);
    if (cancel_after != nullptr) *cancel_after = true;
    if (end_early_after.first != nullptr && rates.size() == 3) {
      end_early_after.first->end_with_steps = end_early_after.second;
    }
    const auto step = static_cast<double>(rates.size() - 1);
    return StepResult{.loss = step, .gradient_norm = 2 * step};
  }
  absl::StatusOr<std::uint64_t> SaveOptimizerState(std::span<float>, std::span<float>) override { return 0; }
  absl::Status LoadOptimizerState(std::span<const float>, std::span<const float>, std::uint64_t) override {
    return absl::OkStatus();
  }
  absl::StatusOr<LossSum> Evaluate(const TokenBatch& batch) override {
    if (fail) return absl::InternalError("engine");
    for (std::uint32_t row = 0; row < batch.rows; ++row) windows.push_back(batch.tokens[row * batch.columns]);
    return LossSum{.nats = 0.5 * batch.rows, .tokens = std::uint64_t{batch.rows} * (batch.columns - 1)};
  }
  std::string Description() const override { return "recorder"; }

  std::vector<std::vector<std::int32_t>> batches;
  std::vector<double> rates;
  std::vector<std::int32_t> windows;  // first token of each
  std::atomic<bool>* cancel_after = nullptr;
  std::pair<StopSignal*, std::uint32_t> end_early_after = {};  // asked in the third step
  bool fail = false;

 private:
  Layout layout_;
};

// Sample i is (10 i, 10 i + 1, ...), held-out window i is (1000 + i, ...).
class CountingDataset final : public Dataset {
 public:
  std::uint64_t token_count() const override { return 0; }
  std::uint64_t sample_count() const override { return 1000; }
  std::uint64_t held_out_count() const override { return held_out; }
  std::uint64_t fingerprint() const override { return 1; }
  void ReadSample(std::uint64_t index, std::span<std::int32_t> tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(10 * index + i);
  }
  void ReadHeldOut(std::uint64_t index, std::span<std::int32_t> tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(1000 + index);
  }
  std::uint64_t held_out = 20;
};

class IntervalRunnerTest : public ::testing::Test {
 protected:
  IntervalRunnerTest() {
    settings_.shape.context = 3;
    settings_.batch_size = 2;
    settings_.evaluation_windows = 10;
    settings_.schedule = {.schedule = Schedule::kConstant,
                          .learning_rate = 0.5,
                          .warmup_steps = 10,
                          .total_steps = 100,
                          .final_ratio = 0.1};
  }
  EngineTools Tools() {
    return {.trainer = &trainer_,
            .dataset = &dataset_,
            .settings = &settings_,
            .clock = MonotonicClock(),
            .board = &board_,
            .stop = &stop_};
  }
  RunSettings settings_;
  RecordingTrainer trainer_;
  CountingDataset dataset_;
  ProgressBoard board_{MonotonicClock()};
  StopSignal stop_;
};

TEST_F(IntervalRunnerTest, TakesSamplesInOrderAndTheScheduleAtItsPosition) {
  const absl::StatusOr<IntervalReport> report =
      RunInterval(Tools(), {.round = 1, .inner_steps = 3, .first_inner_step = 4, .first_sample = 7, .sample_count = 6});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(trainer_.batches,
              ElementsAre(ElementsAre(70, 71, 72, 73, 80, 81, 82, 83), ElementsAre(90, 91, 92, 93, 100, 101, 102, 103),
                          ElementsAre(110, 111, 112, 113, 120, 121, 122, 123)));
  EXPECT_THAT(trainer_.rates, ElementsAre(0.25, 0.3, 0.35));
  EXPECT_EQ(report->inner_steps, 3u);
  EXPECT_EQ(report->tokens, 18u);
  EXPECT_DOUBLE_EQ(report->learning_rate_sum, 0.9);
  EXPECT_DOUBLE_EQ(report->loss_mean, 1);
  EXPECT_DOUBLE_EQ(report->gradient_norm_mean, 2);
  EXPECT_EQ(board_.Read().steps_done, 3u);
  EXPECT_EQ(board_.Read().inner_steps_done, 7u);
}

TEST_F(IntervalRunnerTest, ALeaseThatIsTooShortIsRefused) {
  const absl::StatusOr<IntervalReport> report = RunInterval(Tools(), {.inner_steps = 3, .sample_count = 5});
  EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(trainer_.batches.empty());
}

TEST_F(IntervalRunnerTest, StopsBetweenTwoSteps) {
  trainer_.cancel_after = &stop_.cancel;
  const absl::StatusOr<IntervalReport> report = RunInterval(Tools(), {.inner_steps = 3, .sample_count = 6});
  EXPECT_EQ(report.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(trainer_.batches.size(), 1u);
}

TEST_F(IntervalRunnerTest, EndsEarlyWithWhatItHas) {
  trainer_.end_early_after = {&stop_, 2};
  const absl::StatusOr<IntervalReport> report = RunInterval(Tools(), {.inner_steps = 40, .sample_count = 80});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->inner_steps, 3u);  // asked for 2 in step 3
  EXPECT_EQ(report->tokens, 18u);
  EXPECT_EQ(trainer_.batches.size(), 3u);
  EXPECT_DOUBLE_EQ(report->learning_rate_sum, trainer_.rates[0] + trainer_.rates[1] + trainer_.rates[2]);
}

TEST_F(IntervalRunnerTest, EndsEarlyWithNothingWhenItIsTooLittle) {
  trainer_.end_early_after = {&stop_, 4};
  EXPECT_EQ(RunInterval(Tools(), {.inner_steps = 40, .sample_count = 80}).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(trainer_.batches.size(), 3u);
}

TEST_F(IntervalRunnerTest, PassesOnTheTrainersError) {
  trainer_.fail = true;
  EXPECT_EQ(RunInterval(Tools(), {.inner_steps = 1, .sample_count = 2}).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(RunEvaluation(Tools(), {.evaluation_parts = 1}).status().code(), absl::StatusCode::kInternal);
}

TEST_F(IntervalRunnerTest, EvaluatesItsPartOfTheSpreadWindows) {
  const absl::StatusOr<EvaluationPart> part =
      RunEvaluation(Tools(), {.round = 5, .evaluation_part = 1, .evaluation_parts = 4});
  ASSERT_TRUE(part.ok());
  EXPECT_THAT(trainer_.windows, ElementsAre(1002, 1010, 1018));  // windows 1, 5, 9 of 10 spread over 20
  EXPECT_EQ(part->version, 5u);
  EXPECT_DOUBLE_EQ(part->loss_sum, 1.5);
  EXPECT_EQ(part->tokens, 9u);
}

TEST_F(IntervalRunnerTest, AllPartsTogetherAreAllWindowsOnce) {
  dataset_.held_out = 7;  // fewer than wanted
  std::uint64_t tokens = 0;
  for (std::uint32_t part = 0; part < 3; ++part) {
    tokens += RunEvaluation(Tools(), {.evaluation_part = part, .evaluation_parts = 3})->tokens;
  }
  EXPECT_THAT(trainer_.windows, ::testing::UnorderedElementsAre(1000, 1001, 1002, 1003, 1004, 1005, 1006));
  EXPECT_EQ(tokens, 21u);
}

TEST_F(IntervalRunnerTest, EvaluationStopsBetweenTwoBatches) {
  stop_.cancel = true;
  EXPECT_EQ(RunEvaluation(Tools(), {.evaluation_parts = 1}).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace autoloco::worker
