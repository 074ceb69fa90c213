#include "worker/train/torch_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace autoloco::worker {
namespace {

using ::testing::HasSubstr;

constexpr DecoderShape kNano = {.vocab_size = 256,
                                .width = 32,
                                .layers = 2,
                                .heads = 4,
                                .kv_heads = 2,
                                .mlp_hidden = 64,
                                .context = 16,
                                .tied_head = true};

std::unique_ptr<Trainer> Make(const DecoderShape& shape, std::uint64_t seed, const AdamWConfig& config = {}) {
  auto trainer = MakeTorchTrainer(shape, config, {.device = "cpu", .threads = 1});
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  std::vector<float> values((*trainer)->layout().value_count());
  InitializeParameters((*trainer)->layout(), seed, 0.02, values);
  EXPECT_TRUE((*trainer)->SetParameters(values).ok());
  return *std::move(trainer);
}

std::vector<float> Parameters(Trainer& trainer) {
  std::vector<float> values(trainer.layout().value_count());
  EXPECT_TRUE(trainer.GetParameters(values).ok());
  return values;
}

// A batch of four windows of running text, from `offset` on.
class TextBatch {
 public:
  explicit TextBatch(std::size_t offset = 0) {
    const std::string text = "the quick brown fox jumps over the lazy dog; pack my box with five dozen liquor jugs. ";
    for (std::size_t i = 0; i < 4 * 17; ++i) {
      tokens_.push_back(static_cast<unsigned char>(text[(offset + i) % text.size()]));
    }
  }
  TokenBatch batch() const { return {tokens_, 4, 17}; }

 private:
  std::vector<std::int32_t> tokens_;
};

TEST(TorchTrainerTest, LayoutIsTheDecoders) {
  const Layout want = MakeDecoderLayout(kNano).value();
  EXPECT_EQ(FirstDifference(want, Make(kNano, 1)->layout()), "");
}

TEST(TorchTrainerTest, FirstLossIsThatOfAUniformGuess) {
  const auto trainer = Make(kNano, 1);
  const LossSum sum = trainer->Evaluate(TextBatch().batch()).value();
  EXPECT_EQ(sum.tokens, 64u);
  EXPECT_NEAR(sum.nats / 64, std::log(256.0), 0.1);
}

TEST(TorchTrainerTest, EvaluationIsTheStepsLossAndChangesNothing) {
  const auto trainer = Make(kNano, 1);
  const std::vector<float> before = Parameters(*trainer);
  const double evaluated = trainer->Evaluate(TextBatch().batch())->nats / 64;
  EXPECT_EQ(Parameters(*trainer), before);
  EXPECT_NEAR(trainer->Step(TextBatch().batch(), 1e-3)->loss, evaluated, 1e-6);
  EXPECT_NE(Parameters(*trainer), before);
}

TEST(TorchTrainerTest, LearnsATinyBatchByHeart) {
  for (const bool tied : {true, false}) {
    DecoderShape shape = kNano;
    shape.tied_head = tied;
    const auto trainer = Make(shape, 1);
    const TextBatch text;
    for (int step = 0; step < 150; ++step) ASSERT_TRUE(trainer->Step(text.batch(), 1e-2).ok());
    EXPECT_LT(trainer->Evaluate(text.batch())->nats / 64, 0.1) << "tied " << tied;
  }
}

TEST(TorchTrainerTest, TwoTrainersAgreeBitForBit) {
  const auto one = Make(kNano, 1);
  const auto two = Make(kNano, 1);
  for (std::size_t step = 0; step < 10; ++step) {
    const StepResult first = one->Step(TextBatch(step * 7).batch(), 4e-3).value();
    const StepResult second = two->Step(TextBatch(step * 7).batch(), 4e-3).value();
    EXPECT_EQ(first.loss, second.loss);
    EXPECT_EQ(first.gradient_norm, second.gradient_norm);
  }
  EXPECT_EQ(Parameters(*one), Parameters(*two));
}

TEST(TorchTrainerTest, SetParametersKeepsTheOptimizersState) {
  const auto straight = Make(kNano, 1);
  const auto reset = Make(kNano, 1);
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(straight->Step(TextBatch().batch(), 4e-3).ok());
    ASSERT_TRUE(reset->Step(TextBatch().batch(), 4e-3).ok());
  }
  const std::vector<float> at_three = Parameters(*reset);
  ASSERT_TRUE(reset->SetParameters(std::vector<float>(at_three.size(), 0.5f)).ok());
  ASSERT_TRUE(reset->SetParameters(at_three).ok());
  const auto fresh = Make(kNano, 1);
  ASSERT_TRUE(fresh->SetParameters(at_three).ok());
  for (Trainer* trainer : {straight.get(), reset.get(), fresh.get()}) {
    ASSERT_TRUE(trainer->Step(TextBatch(5).batch(), 4e-3).ok());
  }
  EXPECT_EQ(Parameters(*reset), Parameters(*straight));
  EXPECT_NE(Parameters(*fresh), Parameters(*straight));
}

TEST(TorchTrainerTest, ASavedOptimizerGoesOnWithTheSameBits) {
  const auto straight = Make(kNano, 1);
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(straight->Step(TextBatch().batch(), 4e-3).ok());
  std::vector<float> first(straight->layout().value_count());
  std::vector<float> second(first.size());
  const std::uint64_t steps = straight->SaveOptimizerState(first, second).value();
  EXPECT_EQ(steps, 3u);
  const auto restored = Make(kNano, 1);
  ASSERT_TRUE(restored->SetParameters(Parameters(*straight)).ok());
  ASSERT_TRUE(restored->LoadOptimizerState(first, second, steps).ok());
  for (std::size_t step = 0; step < 3; ++step) {
    for (Trainer* trainer : {straight.get(), restored.get()}) {
      ASSERT_TRUE(trainer->Step(TextBatch(5 * step).batch(), 4e-3).ok());
    }
  }
  EXPECT_EQ(Parameters(*restored), Parameters(*straight));
}

TEST(TorchTrainerTest, ClippingBoundsTheGradientNotTheReport) {
  AdamWConfig config;
  config.clip_norm = 0;
  const auto free = Make(kNano, 1, config);
  config.clip_norm = 1e-3;
  config.epsilon = 1;  // large, so that the size of the gradient shows in the update
  const auto clipped = Make(kNano, 1, config);
  const std::vector<float> before = Parameters(*clipped);
  const StepResult result = clipped->Step(TextBatch().batch(), 1e-3).value();
  EXPECT_EQ(result.gradient_norm, free->Step(TextBatch().batch(), 1e-3)->gradient_norm);
  EXPECT_GT(result.gradient_norm, 0.1);
  const std::vector<float> after = Parameters(*clipped);
  const std::uint64_t norm_weights = clipped->layout().TensorAt(256 * 32).offset;  // they do not decay
  double squares = 0;
  for (std::uint64_t i = norm_weights; i < norm_weights + 32; ++i) squares += std::pow(after[i] - before[i], 2);
  EXPECT_LE(std::sqrt(squares), 1e-3 * 1e-3 * 1.01);
}

TEST(TorchTrainerTest, ANonFiniteGradientIsReportedAndSkipped) {
  const auto trainer = Make(kNano, 1);
  const std::vector<float> good = Parameters(*trainer);
  std::vector<float> bad = good;
  bad[256 * 32 + 3] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(trainer->SetParameters(bad).ok());
  const StepResult result = trainer->Step(TextBatch().batch(), 4e-3).value();
  EXPECT_TRUE(std::isnan(result.loss));
  EXPECT_FALSE(std::isfinite(result.gradient_norm));
  EXPECT_EQ(Parameters(*trainer)[0], good[0]);
  EXPECT_TRUE(std::isnan(trainer->Evaluate(TextBatch().batch())->nats));

  ASSERT_TRUE(trainer->SetParameters(good).ok());  // neither moments nor the count of steps have changed
  const auto fresh = Make(kNano, 1);
  ASSERT_TRUE(trainer->Step(TextBatch().batch(), 4e-3).ok());
  ASSERT_TRUE(fresh->Step(TextBatch().batch(), 4e-3).ok());
  EXPECT_EQ(Parameters(*trainer), Parameters(*fresh));
}

TEST(TorchTrainerTest, ShorterWindowsThanTheContextServe) {
  const std::vector<std::int32_t> tokens = {1, 2, 3, 4, 5, 6};
  const auto trainer = Make(kNano, 1);
  EXPECT_TRUE(trainer->Step({tokens, 2, 3}, 1e-3).ok());
  EXPECT_EQ(trainer->Evaluate({tokens, 3, 2})->tokens, 3u);
}

TEST(TorchTrainerTest, RefusesBatchesThatDoNotFit) {
  const auto trainer = Make(kNano, 1);
  const std::vector<float> before = Parameters(*trainer);
  const std::vector<std::int32_t> tokens(36, 7);
  std::vector<std::int32_t> high = tokens, low = tokens;
  high[5] = 256;
  low[5] = -1;
  for (const TokenBatch& batch : {TokenBatch{tokens, 2, 17}, TokenBatch{tokens, 2, 18}, TokenBatch{tokens, 36, 1},
                                  TokenBatch{{}, 0, 17}, TokenBatch{high, 4, 9}, TokenBatch{low, 4, 9}}) {
    EXPECT_EQ(trainer->Step(batch, 1e-3).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(trainer->Evaluate(batch).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(Parameters(*trainer), before);
}

TEST(TorchTrainerTest, RefusesDevicesAndShapesThatDoNotExist) {
  const auto status = [](const DecoderShape& shape, const std::string& device) {
    return MakeTorchTrainer(shape, {}, {.device = device, .threads = 1}).status();
  };
  EXPECT_EQ(status(kNano, "gpu").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status(kNano, "cuda:x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status(kNano, "cuda:").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status(kNano, "cuda:1000").code(), absl::StatusCode::kFailedPrecondition);
  DecoderShape odd = kNano;
  odd.width = 33;
  EXPECT_EQ(status(odd, "cpu").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(status(kNano, "auto").ok());
}

TEST(TorchTrainerTest, DescribesItself) {
  const std::string description = Make(kNano, 1)->Description();
  EXPECT_THAT(description, HasSubstr("LibTorch 2."));
  EXPECT_THAT(description, HasSubstr("device cpu, 1 threads, BLAS "));
  EXPECT_THAT(description, ::testing::Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace autoloco::worker
