// The stacked engine is the product's trainer, several times over.
#include "tests/bench/learning/stacked_engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "common/base/random.h"
#include "tests/bench/learning/simulation.h"
#include "worker/train/torch_trainer.h"

namespace autoloco::bench {
namespace {

constexpr std::uint32_t kModels = 3;
constexpr std::uint32_t kRows = 2;
constexpr std::uint32_t kContext = 16;
constexpr std::size_t kBatch = kRows * (kContext + 1);

std::vector<std::int32_t> Tokens(std::uint64_t step) {
  std::vector<std::int32_t> tokens(kModels * kBatch);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(Mix(7, step, i) % 256);
  return tokens;
}

std::vector<float> Start(const Layout& layout, std::uint64_t seed) {
  std::vector<float> values(layout.value_count());
  InitializeParameters(layout, seed, 0.05, values);
  return values;
}

std::unique_ptr<StackedEngine> MakeEngine() {
  auto engine = StackedEngine::Make(BenchShape(kContext), {}, kModels).value();
  for (std::uint32_t model = 0; model < kModels; ++model) {
    EXPECT_TRUE(engine->SetParameters(model, Start(engine->layout(), model + 1)).ok());
  }
  return engine;
}

std::vector<float> Parameters(std::uint32_t model, StackedEngine* engine) {
  std::vector<float> values(engine->layout().value_count());
  EXPECT_TRUE(engine->GetParameters(model, values).ok());
  return values;
}

TEST(StackedEngine, EveryModelTrainsAsTheProductsTrainer) {
  const auto engine = MakeEngine();
  const std::vector<double> rates = {1e-3, 2e-3, 3e-3};
  std::vector<std::vector<ModelStep>> taken;
  for (std::uint64_t step = 0; step < 3; ++step) taken.push_back(engine->Step(Tokens(step), rates).value());
  for (std::uint32_t model = 0; model < kModels; ++model) {
    const auto trainer = worker::MakeTorchTrainer(BenchShape(kContext), {}, {"cpu", 1}).value();
    ASSERT_TRUE(trainer->SetParameters(Start(trainer->layout(), model + 1)).ok());
    for (std::uint64_t step = 0; step < 3; ++step) {
      const std::vector<std::int32_t> tokens = Tokens(step);
      const worker::TokenBatch batch{std::span(tokens).subspan(model * kBatch, kBatch), kRows, kContext + 1};
      const worker::StepResult expected = trainer->Step(batch, rates[model]).value();
      EXPECT_NEAR(taken[step][model].loss, expected.loss, 1e-4);
      EXPECT_NEAR(taken[step][model].gradient_norm, expected.gradient_norm, 1e-3 * expected.gradient_norm);
    }
    // AdamW's first steps have the size of the learning rate whatever the gradient, so a sign that rounding turns shows
    // in single values: the mean tells whether the models are the same.
    std::vector<float> expected(trainer->layout().value_count());
    ASSERT_TRUE(trainer->GetParameters(expected).ok());
    const std::vector<float> values = Parameters(model, engine.get());
    double difference = 0;
    for (std::size_t i = 0; i < values.size(); ++i) difference += std::abs(values[i] - expected[i]);
    EXPECT_LT(difference / static_cast<double>(values.size()), 0.01 * rates[model]);
  }
}

TEST(StackedEngine, ModelsWithoutALearningRateStayWhereTheyAre) {
  const auto engine = MakeEngine();
  ASSERT_TRUE(engine->Step(Tokens(0), std::vector<double>{1e-3, 0, 1e-3}).ok());
  EXPECT_EQ(Parameters(1, engine.get()), Start(engine->layout(), 2));
  EXPECT_NE(Parameters(0, engine.get()), Start(engine->layout(), 1));
}

TEST(StackedEngine, AFreshOptimizerForgetsItsMoments) {
  const auto with_memory = MakeEngine();
  const auto fresh = MakeEngine();
  const std::vector<double> rates = {1e-3, 1e-3, 1e-3};
  for (StackedEngine* engine : {with_memory.get(), fresh.get()}) ASSERT_TRUE(engine->Step(Tokens(0), rates).ok());
  ASSERT_TRUE(fresh->ResetOptimizer(2).ok());
  for (StackedEngine* engine : {with_memory.get(), fresh.get()}) ASSERT_TRUE(engine->Step(Tokens(1), rates).ok());
  EXPECT_EQ(Parameters(0, with_memory.get()), Parameters(0, fresh.get()));
  EXPECT_NE(Parameters(2, with_memory.get()), Parameters(2, fresh.get()));
}

}  // namespace
}  // namespace autoloco::bench
