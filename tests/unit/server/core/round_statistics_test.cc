// The statistics of a round: unbiased on made-up deltas with a known common part and known noise.
#include "server/core/round_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/base/random.h"
#include "server/core/combination.h"

namespace autoloco::server {
namespace {

constexpr std::size_t kSize = 4000;

// Deltas that are S_i (v + noise), the noise of a velocity having variance sigma2 / tokens_i.
struct Synthetic {
  std::vector<WorkDone> work;
  double common = 0;  // |v|^2
  double sigma2 = 0;  // of all values of one velocity and one token
  std::uint64_t seed = 0;
};

RoundStatistics Measure(const Synthetic& synthetic, double scale = 1) {
  const RandomStream random(synthetic.seed, 7);
  const std::size_t count = synthetic.work.size();
  const Combination combination = CombineWork(synthetic.work, {});
  std::vector<double> mean(kSize, 0.0);
  std::vector<DeltaScalars> deltas;
  for (std::size_t i = 0; i < count; ++i) {
    const double deviation = std::sqrt(synthetic.sigma2 / static_cast<double>(synthetic.work[i].tokens) / kSize);
    double squares = 0;
    for (std::size_t k = 0; k < kSize; ++k) {
      const double velocity = std::sqrt(synthetic.common / kSize) * (k % 2 == 0 ? 1 : -1);
      const double value =
          scale * synthetic.work[i].learning_rate_sum * (velocity + deviation * random.Normal(i * kSize + k));
      squares += value * value;
      mean[k] += combination.parts[i].weight * value;
    }
    deltas.push_back({combination.parts[i].share, combination.parts[i].weight, squares});
  }
  double mean_squares = 0;
  for (const double value : mean) mean_squares += value * value;
  return ComputeRoundStatistics({deltas, mean_squares, 10 * scale, 40});
}

// Means of noise2 and sig2 over many draws against what was put in.
void ExpectUnbiased(Synthetic synthetic, int draws) {
  const Combination combination = CombineWork(synthetic.work, {});
  double noise = 0;
  double common = 0;
  for (int draw = 0; draw < draws; ++draw) {
    synthetic.seed = static_cast<std::uint64_t>(draw) + 1;
    const RoundStatistics statistics = Measure(synthetic);
    noise += *statistics.noise / draws;
    common += *statistics.common / draws;
  }
  double tokens = 0;
  for (const WorkDone& one : synthetic.work) tokens += static_cast<double>(one.tokens);
  const double n = static_cast<double>(synthetic.work.size());
  const double unit = combination.learning_rate_sum * combination.learning_rate_sum;
  const double want_noise = unit * synthetic.sigma2 * n / tokens;  // of one worker with the mean number of tokens
  EXPECT_NEAR(noise, want_noise, 0.02 * want_noise) << n;
  EXPECT_NEAR(common, unit * synthetic.common, 0.02 * unit * synthetic.common) << n;
}

TEST(RoundStatistics, UnbiasedForEqualWork) {
  for (const std::size_t count : {2, 3, 8}) {
    ExpectUnbiased({std::vector<WorkDone>(count, {1000, 0.08}), 4, 3000}, 40);
  }
}

TEST(RoundStatistics, UnbiasedForSixtyFourWorkers) {
  ExpectUnbiased({std::vector<WorkDone>(64, {1000, 0.08}), 4, 3000}, 6);
}

TEST(RoundStatistics, UnbiasedForUnequalWeights) {
  ExpectUnbiased({{{500, 0.04}, {1000, 0.08}, {2000, 0.16}}, 4, 3000}, 40);
  ExpectUnbiased({{{500, 0.08}, {900, 0.08}, {2000, 0.08}, {1000, 0.03}, {700, 0.06}}, 4, 3000}, 40);
  ExpectUnbiased({{{300, 0.08}, {1700, 0.05}}, 4, 3000}, 60);
}

TEST(RoundStatistics, AgreementAndNoiseScaleFollow) {
  const Synthetic synthetic{std::vector<WorkDone>(8, {1000, 0.08}), 4, 12000, 3};
  const RoundStatistics statistics = Measure(synthetic);
  EXPECT_NEAR(*statistics.agreement, 0.25, 0.01);  // 4 / (4 + 12)
  EXPECT_DOUBLE_EQ(*statistics.noise_steps, 40 * (1 - *statistics.agreement) / *statistics.agreement);
  EXPECT_DOUBLE_EQ(*statistics.path, std::sqrt(*statistics.delta_power * 40) / 10);
}

TEST(RoundStatistics, ScaleChangesNeitherAgreementNorPath) {
  const Synthetic synthetic{{{500, 0.04}, {1000, 0.08}, {2000, 0.16}}, 4, 3000, 5};
  const RoundStatistics one = Measure(synthetic);
  for (const double scale : {1e-6, 1e6}) {
    const RoundStatistics other = Measure(synthetic, scale);
    EXPECT_NEAR(*other.agreement, *one.agreement, 1e-12);
    EXPECT_NEAR(*other.path, *one.path, 1e-12 * *one.path);
    EXPECT_NEAR(*other.noise, *one.noise * scale * scale, 1e-12 * *one.noise * scale * scale);
  }
}

TEST(RoundStatistics, AgreementIsClipped) {
  const std::vector<DeltaScalars> deltas = {{0.5, 0.5, 2}, {0.5, 0.5, 2}};
  EXPECT_EQ(*ComputeRoundStatistics({deltas, 2, 1, 10}).agreement, kAgreementMax);  // all alike
  EXPECT_EQ(*ComputeRoundStatistics({deltas, 0, 1, 10}).agreement, kAgreementMin);  // opposite
}

TEST(RoundStatistics, UndefinedWhereNothingCanBeSaid) {
  const std::vector<DeltaScalars> one = {{1, 1, 2}};
  const RoundStatistics alone = ComputeRoundStatistics({one, 2, 4, 10});
  EXPECT_EQ(*alone.delta_power, 2);
  EXPECT_TRUE(alone.path.has_value());
  EXPECT_FALSE(alone.noise || alone.common || alone.agreement || alone.noise_steps);
  EXPECT_FALSE(ComputeRoundStatistics({one, 2, 0, 10}).path);

  const std::vector<DeltaScalars> zero = {{0.5, 0.5, 0}, {0.5, 0.5, 0}};
  EXPECT_FALSE(ComputeRoundStatistics({zero, 0, 1, 10}).agreement);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<DeltaScalars> broken = {{0.5, 0.5, nan}, {0.5, 0.5, 1}};
  EXPECT_EQ(ComputeRoundStatistics({broken, 1, 1, 10}), RoundStatistics{});
  EXPECT_EQ(ComputeRoundStatistics({zero, nan, 1, 10}), RoundStatistics{});
  EXPECT_EQ(ComputeRoundStatistics({{}, 1, 1, 10}), RoundStatistics{});
}

}  // namespace
}  // namespace autoloco::server
