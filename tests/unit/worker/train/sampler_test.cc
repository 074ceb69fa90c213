#include "worker/train/sampler.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace autoloco::worker {
namespace {

// Probabilities 0.1, 0.4, 0.2, 0.3.
std::vector<float> Logits() { return {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)}; }

TEST(SampleTokenTest, QuantilesFollowTheProbabilities) {
  const SamplerConfig config{.temperature = 1};
  std::array<int, 4> counts{};
  for (int i = 0; i < 1000; ++i) ++counts[SampleToken(Logits(), config, (i + 0.5) / 1000)];
  EXPECT_NEAR(counts[0], 100, 1);
  EXPECT_NEAR(counts[1], 400, 1);
  EXPECT_NEAR(counts[2], 200, 1);
  EXPECT_NEAR(counts[3], 300, 1);
}

TEST(SampleTokenTest, TemperatureSharpensAndZeroTakesTheLikeliest) {
  std::array<int, 4> counts{};
  for (int i = 0; i < 1000; ++i) ++counts[SampleToken(Logits(), {.temperature = 0.5}, (i + 0.5) / 1000)];
  EXPECT_NEAR(counts[1], 1000 * 0.16 / 0.30, 1);  // squares of the probabilities
  for (const double uniform : {0.0, 0.5, 0.999999}) {
    EXPECT_EQ(SampleToken(Logits(), {.temperature = 0}, uniform), 1u);
  }
}

TEST(SampleTokenTest, TopKLeavesOutTheRest) {
  std::array<int, 4> counts{};
  for (int i = 0; i < 1000; ++i) ++counts[SampleToken(Logits(), {.temperature = 1, .top_k = 2}, (i + 0.5) / 1000)];
  EXPECT_EQ(counts[0], 0);
  EXPECT_EQ(counts[2], 0);
  EXPECT_NEAR(counts[1], 571, 1);
  EXPECT_NEAR(counts[3], 429, 1);
}

TEST(SampleTokenTest, EqualLogitsGoToTheSmallerToken) {
  const std::vector<float> equal(5, 1.0f);
  EXPECT_EQ(SampleToken(equal, {.temperature = 0}, 0.9), 0u);
  EXPECT_EQ(SampleToken(equal, {.temperature = 1, .top_k = 1}, 0.9), 0u);
  EXPECT_EQ(SampleToken(equal, {.temperature = 1, .top_k = 9}, 0.9), 4u);
}

TEST(SampleTokenTest, SurvivesLargeLogitsAndTinyTemperatures) {
  EXPECT_EQ(SampleToken(std::vector<float>{-1e30f, 3e38f, 0}, {.temperature = 1e-6}, 0.999999999), 1u);
  EXPECT_EQ(SampleToken(std::vector<float>{7}, {.temperature = 1}, 0.5), 0u);
}

}  // namespace
}  // namespace autoloco::worker
