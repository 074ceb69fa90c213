#include "worker/train/torch_generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "worker/train/torch_trainer.h"

namespace autoloco::worker {
namespace {

constexpr DecoderShape kNano = {.vocab_size = 256,
                                .width = 32,
                                .layers = 2,
                                .heads = 4,
                                .kv_heads = 2,
                                .mlp_hidden = 64,
                                .context = 16,
                                .tied_head = true};
constexpr absl::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz";

// Parameters of a model that knows the alphabet, round and round, by heart.
std::vector<float> TrainedParameters() {
  auto trainer = MakeTorchTrainer(kNano, {}, {.device = "cpu", .threads = 1}).value();
  std::vector<float> values(trainer->layout().value_count());
  InitializeParameters(trainer->layout(), 1, 0.02, values);
  EXPECT_TRUE(trainer->SetParameters(values).ok());
  std::vector<std::int32_t> tokens;
  for (std::size_t row = 0; row < 8; ++row) {
    for (std::size_t i = 0; i < 17; ++i) tokens.push_back(kAlphabet[(row * 5 + i) % kAlphabet.size()]);
  }
  for (int step = 0; step < 100; ++step) EXPECT_TRUE(trainer->Step({tokens, 8, 17}, 1e-2).ok());
  EXPECT_TRUE(trainer->GetParameters(values).ok());
  return values;
}

class GenerateTextTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { parameters_ = new std::vector<float>(TrainedParameters()); }
  static void TearDownTestSuite() {
    delete parameters_;
    parameters_ = nullptr;
  }
  static std::vector<float>* parameters_;
};
std::vector<float>* GenerateTextTest::parameters_ = nullptr;

TEST_F(GenerateTextTest, WritesWhatTheModelLearntBeyondItsContext) {
  const auto text =
      GenerateText(kNano, *parameters_, {.prompt = "abcdef", .tokens = 46, .sampler = {.temperature = 0}});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "ghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz");
}

TEST_F(GenerateTextTest, EqualSeedsGiveEqualText) {
  const auto generate = [](std::uint64_t seed) {
    return GenerateText(kNano, *parameters_, {.prompt = "", .tokens = 30, .sampler = {.temperature = 3}, .seed = seed})
        .value();
  };
  EXPECT_EQ(generate(1), generate(1));
  EXPECT_NE(generate(1), generate(2));
  EXPECT_EQ(generate(1).size(), 30u);
}

TEST_F(GenerateTextTest, RefusesWhatDoesNotFit) {
  const auto code = [](const DecoderShape& shape, const std::vector<float>& parameters, double temperature) {
    return GenerateText(shape, parameters, {.tokens = 3, .sampler = {.temperature = temperature}}).status().code();
  };
  EXPECT_EQ(code(kNano, std::vector<float>(7), 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(kNano, *parameters_, -1), absl::StatusCode::kInvalidArgument);
  DecoderShape words = kNano;
  words.vocab_size = 1000;
  EXPECT_EQ(code(words, std::vector<float>(MakeDecoderLayout(words)->value_count()), 1),
            absl::StatusCode::kInvalidArgument);
  std::vector<float> broken = *parameters_;
  broken.back() = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(code(kNano, broken, 1), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace autoloco::worker
