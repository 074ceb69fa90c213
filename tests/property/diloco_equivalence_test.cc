// What DiLoCo must reduce to: with one worker, one inner step an interval, outer learning rate 1 and no momentum, the
// whole way (delta, codec, outer step) is theta - (theta - theta'), bit for bit, and so plain AdamW up to rounding.
// The trainer, the codec and the kernel are those of the programs; nothing in them knows of this case.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/parallel.h"
#include "common/base/random.h"
#include "common/codec/delta_codec.h"
#include "common/tensor/decoder.h"
#include "gtest/gtest.h"
#include "server/kernels/outer_step.h"
#include "worker/train/torch_trainer.h"
#include "worker/train/trainer.h"

namespace autoloco {
namespace {

constexpr int kSteps = 20;
constexpr std::uint32_t kRows = 4;
// The preset "nano" of common/config/model_presets.cc.
const DecoderShape kNano{
    .vocab_size = 256, .width = 64, .layers = 2, .heads = 2, .kv_heads = 2, .mlp_hidden = 160, .context = 64};

std::unique_ptr<worker::Trainer> MakeTrainer() {
  return worker::MakeTorchTrainer(kNano, worker::AdamWConfig{}, {.device = "cpu", .threads = 1}).value();
}

std::vector<float> InitialParameters(const Layout& layout) {
  std::vector<float> values(layout.value_count());
  InitializeParameters(layout, 1, 0.02, values);
  return values;
}

// Batch of step `step`: a text with some structure, so that there is something to learn.
std::vector<std::int32_t> Tokens(int step) {
  const RandomStream random(5, static_cast<std::uint64_t>(step));
  std::vector<std::int32_t> tokens(kRows * (kNano.context + 1));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>(97 + (i * i + 3 * i) % 19 + static_cast<std::size_t>(random.Uniform(i) * 4));
  }
  return tokens;
}

double InnerStep(worker::Trainer* trainer, int step) {
  const std::vector<std::int32_t> tokens = Tokens(step);
  const worker::TokenBatch batch{.tokens = tokens, .rows = kRows, .columns = kNano.context + 1};
  return trainer->Step(batch, 1e-3).value().loss;
}

std::vector<float> Parameters(worker::Trainer* trainer) {
  std::vector<float> values(trainer->layout().value_count());
  EXPECT_TRUE(trainer->GetParameters(values).ok());
  return values;
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

// The parameters after every step of the whole way.
std::vector<std::vector<float>> RunOuterLoop() {
  WorkPool pool(2);
  const std::unique_ptr<worker::Trainer> trainer = MakeTrainer();
  std::vector<float> params = InitialParameters(trainer->layout());
  std::vector<float> momentum(params.size(), 0.0f);
  std::vector<std::vector<float>> versions;
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_TRUE(trainer->SetParameters(params).ok());
    InnerStep(trainer.get(), step);
    std::vector<float> delta = Parameters(trainer.get());
    for (std::size_t i = 0; i < delta.size(); ++i) delta[i] = params[i] - delta[i];
    const std::string payload = EncodeVector(delta, Codec::kFp32, 1);
    const server::Contribution contribution{std::as_bytes(std::span<const char>(payload)), Codec::kFp32, 1.0};
    const server::OuterCoefficients outer{.learning_rate = 1, .momentum = 0, .nesterov = true};
    EXPECT_TRUE(server::ApplyOuterStep({&contribution, 1}, outer, params, momentum, &pool).ok());
    versions.push_back(params);
  }
  return versions;
}

TEST(DilocoEquivalenceTest, OneWorkerOneStepIsThePlainLoopBitForBit) {
  const std::vector<std::vector<float>> versions = RunOuterLoop();
  const std::unique_ptr<worker::Trainer> trainer = MakeTrainer();
  std::vector<float> theta = InitialParameters(trainer->layout());
  for (int step = 0; step < kSteps; ++step) {
    ASSERT_TRUE(trainer->SetParameters(theta).ok());
    InnerStep(trainer.get(), step);
    const std::vector<float> end = Parameters(trainer.get());
    ASSERT_FALSE(SameBits(theta, end));
    for (std::size_t i = 0; i < theta.size(); ++i) theta[i] = theta[i] - (theta[i] - end[i]);
    ASSERT_TRUE(SameBits(versions[static_cast<std::size_t>(step)], theta)) << "step " << step;
  }
}

TEST(DilocoEquivalenceTest, OneWorkerOneStepIsAdamW) {
  const std::vector<std::vector<float>> versions = RunOuterLoop();
  const std::unique_ptr<worker::Trainer> trainer = MakeTrainer();
  const std::vector<float> start = InitialParameters(trainer->layout());
  ASSERT_TRUE(trainer->SetParameters(start).ok());
  double first_loss = 0;
  double last_loss = 0;
  for (int step = 0; step < kSteps; ++step) {
    last_loss = InnerStep(trainer.get(), step);
    if (step == 0) first_loss = last_loss;
  }
  EXPECT_LT(last_loss, first_loss - 0.5);

  const std::vector<float> end = Parameters(trainer.get());
  float largest = 0;
  float moved = 0;
  for (std::size_t i = 0; i < end.size(); ++i) {
    const float difference = std::abs(versions.back()[i] - end[i]);
    if (!(difference <= largest)) largest = difference;
    moved = std::max(moved, std::abs(end[i] - start[i]));
  }
  EXPECT_LE(largest, 1e-6f);
  EXPECT_GT(moved, 1e-2f);
}

}  // namespace
}  // namespace autoloco
