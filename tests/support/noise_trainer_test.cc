#include "tests/support/noise_trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/codec/codec.h"

namespace autoloco::worker {
namespace {

constexpr std::uint64_t kValues = 2 * kBlockValues + 5;

NoiseTrainer MakeTrainer(std::uint64_t seed) {
  return NoiseTrainer(Layout::Make({{"a", {kValues}}}).value(), {.seed = seed});
}

std::vector<float> Parameters(NoiseTrainer& trainer) {
  std::vector<float> values(kValues);
  EXPECT_TRUE(trainer.GetParameters(values).ok());
  return values;
}

TEST(NoiseTrainerTest, IsAFunctionOfSeedAndStepsAlone) {
  NoiseTrainer one = MakeTrainer(1);
  NoiseTrainer same = MakeTrainer(1);
  NoiseTrainer other = MakeTrainer(2);
  ASSERT_TRUE(one.SetParameters(std::vector<float>(kValues, 1.0f)).ok());
  const std::vector<float> before = Parameters(one);
  EXPECT_EQ(before, Parameters(same));
  EXPECT_NE(before, Parameters(other));
  ASSERT_TRUE(one.Step({}, 0.1).ok());
  EXPECT_NE(before, Parameters(one));
  ASSERT_TRUE(same.Step({}, 0.1).ok());
  EXPECT_EQ(Parameters(one), Parameters(same));
}

TEST(NoiseTrainerTest, EveryBlockIsNoiseOfItsOwn) {
  NoiseTrainer trainer = MakeTrainer(1);
  const std::vector<float> values = Parameters(trainer);
  EXPECT_FALSE(std::equal(values.begin(), values.begin() + kBlockValues, values.begin() + kBlockValues));
  double sum = 0;
  double squares = 0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(sum / kValues, 0, 0.001);
  EXPECT_NEAR(std::sqrt(squares / kValues), 0.02, 0.001);
}

TEST(NoiseTrainerTest, StepsSurviveARestart) {
  NoiseTrainer trainer = MakeTrainer(1);
  ASSERT_TRUE(trainer.Step({}, 0.1).ok());
  std::vector<float> first(kValues, 1.0f);
  std::vector<float> second(kValues, 1.0f);
  const std::uint64_t steps = trainer.SaveOptimizerState(first, second).value();
  NoiseTrainer next = MakeTrainer(1);
  ASSERT_TRUE(next.LoadOptimizerState(first, second, steps).ok());
  EXPECT_EQ(Parameters(trainer), Parameters(next));
  EXPECT_EQ(first, std::vector<float>(kValues, 0.0f));
}

}  // namespace
}  // namespace autoloco::worker
