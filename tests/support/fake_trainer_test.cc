#include "tests/support/fake_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace autoloco::worker {
namespace {

Layout SmallLayout() { return Layout::Make({{"a", {4, 3}}, {"b", {5}}}).value(); }

std::vector<float> Parameters(FakeTrainer& trainer) {
  std::vector<float> values(trainer.layout().value_count());
  EXPECT_TRUE(trainer.GetParameters(values).ok());
  return values;
}

// Batches of one row of three tokens.
const std::vector<std::int32_t> kTokens = {1, 2, 3};
const std::vector<std::int32_t> kOtherTokens = {1, 2, 4};
const TokenBatch kBatch{kTokens, 1, 3};
const TokenBatch kOtherBatch{kOtherTokens, 1, 3};

TEST(FakeTrainerTest, LossFallsAndHeldOutLossCountsTokens) {
  FakeTrainer trainer(SmallLayout());
  const LossSum first = trainer.Evaluate(kBatch).value();
  EXPECT_EQ(first.tokens, 2u);
  const double first_loss = trainer.Step(kBatch, 0.1)->loss;
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(trainer.Step(kBatch, 0.1).ok());
  EXPECT_LT(trainer.Step(kBatch, 0.1)->loss, first_loss / 1000);
  EXPECT_LT(trainer.Evaluate(kBatch)->nats, first.nats / 10);
}

TEST(FakeTrainerTest, DependsOnSeedAndBatchAlone) {
  FakeTrainer one(SmallLayout());
  FakeTrainer same(SmallLayout());
  FakeTrainer other_batch(SmallLayout());
  FakeTrainer other_seed(SmallLayout(), {.seed = 2});
  ASSERT_TRUE(one.Step(kBatch, 0.1).ok());
  ASSERT_TRUE(same.Step(kBatch, 0.1).ok());
  ASSERT_TRUE(other_batch.Step(kOtherBatch, 0.1).ok());
  ASSERT_TRUE(other_seed.Step(kBatch, 0.1).ok());
  EXPECT_EQ(Parameters(one), Parameters(same));
  EXPECT_NE(Parameters(one), Parameters(other_batch));
  EXPECT_NE(Parameters(one), Parameters(other_seed));
}

TEST(FakeTrainerTest, StepIsTheFormula) {
  FakeTrainer trainer(SmallLayout());
  ASSERT_TRUE(trainer.Step(kBatch, 1).ok());  // lands on what the batch sees of the target
  const std::vector<float> seen = Parameters(trainer);
  ASSERT_TRUE(trainer.SetParameters(std::vector<float>(seen.size(), 1.0f)).ok());
  const StepResult result = trainer.Step(kBatch, 0.25).value();
  const std::vector<float> after = Parameters(trainer);
  double squares = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_NEAR(after[i], 1 - 0.25 * (1 - seen[i]), 1e-6);
    squares += (1 - seen[i]) * (1 - seen[i]);
  }
  EXPECT_NEAR(result.loss, squares / static_cast<double>(seen.size()), 1e-6);
  EXPECT_NEAR(result.gradient_norm, std::sqrt(squares), 1e-6);
}

TEST(FakeTrainerTest, TheOptimizersStateMatters) {
  const FakeTrainerOptions options{.momentum = 0.9};
  FakeTrainer whole(SmallLayout(), options);
  FakeTrainer fresh(SmallLayout(), options);
  FakeTrainer restored(SmallLayout(), options);
  ASSERT_TRUE(whole.Step(kBatch, 0.1).ok());
  std::vector<float> first(whole.layout().value_count());
  std::vector<float> second(first.size());
  const std::uint64_t steps = whole.SaveOptimizerState(first, second).value();
  EXPECT_EQ(steps, 1u);
  ASSERT_TRUE(restored.LoadOptimizerState(first, second, steps).ok());
  const std::vector<float> values = Parameters(whole);
  for (FakeTrainer* trainer : {&fresh, &restored}) ASSERT_TRUE(trainer->SetParameters(values).ok());
  for (FakeTrainer* trainer : {&whole, &fresh, &restored}) ASSERT_TRUE(trainer->Step(kOtherBatch, 0.1).ok());
  EXPECT_EQ(Parameters(whole), Parameters(restored));
  EXPECT_NE(Parameters(whole), Parameters(fresh));
}

TEST(FakeTrainerTest, LeavesANanAtTheStepAskedFor) {
  FakeTrainer trainer(SmallLayout(), {.nan_step = 1});
  ASSERT_TRUE(trainer.Step(kBatch, 0.1).ok());
  EXPECT_FALSE(std::isnan(Parameters(trainer)[0]));
  ASSERT_TRUE(trainer.Step(kBatch, 0.1).ok());
  EXPECT_TRUE(std::isnan(Parameters(trainer)[0]));
  EXPECT_FALSE(std::isnan(Parameters(trainer)[1]));
}

TEST(FakeTrainerTest, StepTakesItsTime) {
  FakeTrainer trainer(SmallLayout(), {.step_duration = absl::Milliseconds(20)});
  const Instant begin = MonotonicClock()->Now();
  ASSERT_TRUE(trainer.Step(kBatch, 0.1).ok());
  EXPECT_GE(MonotonicClock()->Now() - begin, absl::Milliseconds(20));
}

}  // namespace
}  // namespace autoloco::worker
