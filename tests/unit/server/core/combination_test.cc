// The combination of unequal work: shares, weights, who is left out.
#include "server/core/combination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "common/base/random.h"

namespace autoloco::server {
namespace {

std::vector<double> Shares(const Combination& combination) {
  std::vector<double> shares;
  for (const Combination::Part& part : combination.parts) shares.push_back(part.share);
  return shares;
}

double Sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// sum w_i D_i for scalar deltas.
double Combined(const Combination& combination, const std::vector<double>& deltas) {
  double sum = 0;
  for (std::size_t i = 0; i < deltas.size(); ++i) sum += combination.parts[i].weight * deltas[i];
  return sum;
}

std::vector<WorkDone> RandomWork(std::uint64_t seed, std::size_t count) {
  const RandomStream random(seed, 1);
  std::vector<WorkDone> work;
  for (std::size_t i = 0; i < count; ++i) {
    const double length = 0.05 + random.Uniform(2 * i);
    work.push_back({1 + static_cast<std::uint64_t>(1e6 * random.Uniform(2 * i + 1)), length});
  }
  return work;
}

TEST(Combination, EqualWorkIsThePlainMean) {
  for (const std::size_t count : {1, 2, 3, 7, 64}) {
    std::vector<WorkDone> work(count, {4096, 0.08});
    work[0].learning_rate_sum *= 1 + 1e-12;  // the last bits of a sum
    const Combination combination = CombineWork(work, {});
    EXPECT_TRUE(combination.plain);
    EXPECT_EQ(combination.contributors, count);
    EXPECT_NEAR(combination.learning_rate_sum, 0.08, 1e-12);
    for (const Combination::Part& part : combination.parts) {
      EXPECT_EQ(part.weight, 1.0 / static_cast<double>(count));  // the same number, bit for bit
      EXPECT_EQ(part.share, part.weight);
    }
  }
}

TEST(Combination, EqualLearningRatesWeighByTokens) {
  const Combination combination = CombineWork(std::vector<WorkDone>{{300, 0.08}, {100, 0.08}}, {});
  EXPECT_FALSE(combination.plain);
  EXPECT_THAT(Shares(combination), testing::ElementsAre(0.75, 0.25));
  EXPECT_EQ(combination.parts[0].weight, 0.75);
  EXPECT_EQ(combination.parts[1].weight, 0.25);
}

TEST(Combination, AveragesVelocities) {
  // Twice the steps: twice the tokens and twice the length. Equal velocities come out as they are, at the mean length.
  const std::vector<WorkDone> work = {{200, 0.2}, {100, 0.1}};
  const Combination combination = CombineWork(work, {});
  EXPECT_NEAR(combination.learning_rate_sum, 2.0 / 3 * 0.2 + 1.0 / 3 * 0.1, 1e-15);
  const double velocity = 5;
  EXPECT_NEAR(Combined(combination, {0.2 * velocity, 0.1 * velocity}), combination.learning_rate_sum * velocity, 1e-14);
  // Raw deltas weigh alike here: tokens and length cancel.
  EXPECT_NEAR(combination.parts[0].weight, combination.parts[1].weight, 1e-15);
}

TEST(Combination, LeavesOutWhoDidNothing) {
  const Combination combination =
      CombineWork(std::vector<WorkDone>{{100, 0.2}, {0, 0.2}, {100, 0.0099}, {100, 0.0101}}, {});
  EXPECT_EQ(combination.contributors, 2u);
  EXPECT_EQ(combination.parts[0].left_out, LeftOut::kNo);
  EXPECT_EQ(combination.parts[1].left_out, LeftOut::kNoTokens);
  EXPECT_EQ(combination.parts[2].left_out, LeftOut::kTooLittle);
  EXPECT_EQ(combination.parts[3].left_out, LeftOut::kNo);
  EXPECT_EQ(combination.parts[1].weight, 0);
  EXPECT_EQ(combination.parts[2].weight, 0);
}

TEST(Combination, SomebodyAlwaysContributes) {
  for (const double length : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    const Combination alone = CombineWork(std::vector<WorkDone>{{100, length}}, {});
    EXPECT_EQ(alone.contributors, 1u);
    EXPECT_EQ(alone.parts[0].weight, 1);
    const Combination two = CombineWork(std::vector<WorkDone>{{0, length}, {0, length}}, {});
    EXPECT_TRUE(two.plain);
    EXPECT_EQ(two.parts[1].weight, 0.5);
  }
  const Combination no_tokens = CombineWork(std::vector<WorkDone>{{0, 0.3}, {0, 0.1}}, {});
  EXPECT_EQ(no_tokens.contributors, 2u);
  EXPECT_DOUBLE_EQ(no_tokens.learning_rate_sum, 0.2);
}

TEST(Combination, OneIslandIsCapped) {
  const auto work = [](std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
    return std::vector<WorkDone>{{a, 0.1}, {b, 0.1}, {c, 0.1}, {d, 0.1}};
  };
  EXPECT_THAT(Shares(CombineWork(work(970, 10, 10, 10), {})),
              testing::ElementsAre(0.5, testing::DoubleNear(1.0 / 6, 1e-15), testing::DoubleNear(1.0 / 6, 1e-15),
                                   testing::DoubleNear(1.0 / 6, 1e-15)));
  // The excess lifts the second above the cap: capped in turn.
  EXPECT_THAT(Shares(CombineWork(work(600, 380, 10, 10), {})),
              testing::ElementsAre(0.5, testing::DoubleNear(0.475, 1e-12), testing::DoubleNear(0.0125, 1e-12),
                                   testing::DoubleNear(0.0125, 1e-12)));
  const std::vector<double> twice = Shares(CombineWork(work(1000, 999, 1, 1), {}));
  EXPECT_LE(twice[0], 0.5);
  EXPECT_LE(twice[1], 0.5);
  // Two contributors are not capped.
  EXPECT_THAT(Shares(CombineWork(std::vector<WorkDone>{{990, 0.1}, {10, 0.1}}, {})), testing::ElementsAre(0.99, 0.01));
}

TEST(Combination, LateDeltasAreLeftOutOrDiscounted) {
  const std::vector<WorkDone> work = {{100, 0.1}, {100, 0.1, 1}, {100, 0.1, 3}};
  const Combination dropped = CombineWork(work, {});
  EXPECT_EQ(dropped.contributors, 1u);
  EXPECT_EQ(dropped.parts[1].left_out, LeftOut::kTooLate);
  EXPECT_TRUE(dropped.plain);
  const Combination discounted = CombineWork(work, {.staleness_max = 2, .staleness_discount = 1});
  EXPECT_EQ(discounted.contributors, 2u);
  EXPECT_FALSE(discounted.plain);
  EXPECT_NEAR(discounted.parts[0].share, 2.0 / 3, 1e-15);
  EXPECT_NEAR(discounted.parts[1].share, 1.0 / 3, 1e-15);
}

TEST(Combination, PropertiesOnRandomWork) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::vector<WorkDone> work = RandomWork(seed, 1 + seed % 64);
    const Combination combination = CombineWork(work, {});
    EXPECT_NEAR(Sum(Shares(combination)), 1, 1e-12);
    std::vector<double> deltas;
    for (std::size_t i = 0; i < work.size(); ++i) {
      const Combination::Part& part = combination.parts[i];
      EXPECT_GE(part.weight, 0);
      if (combination.contributors > 2) {
        EXPECT_LE(part.share, 2.0 / combination.contributors + 1e-12);
      }
      deltas.push_back(work[i].learning_rate_sum * 3);  // one velocity for all
    }
    EXPECT_NEAR(Combined(combination, deltas), 3 * combination.learning_rate_sum, 1e-12);
    // The order of the workers changes nothing but the last bits.
    std::reverse(work.begin(), work.end());
    const Combination reversed = CombineWork(work, {});
    for (std::size_t i = 0; i < work.size(); ++i) {
      EXPECT_NEAR(reversed.parts[work.size() - 1 - i].weight, combination.parts[i].weight, 1e-12);
    }
    // A unit of learning rate is a unit: scaling all S changes no weight.
    for (WorkDone& one : work) one.learning_rate_sum *= 1000;
    const Combination scaled = CombineWork(work, {});
    for (std::size_t i = 0; i < work.size(); ++i) {
      EXPECT_NEAR(scaled.parts[i].weight, reversed.parts[i].weight, 1e-12);
    }
  }
}

}  // namespace
}  // namespace autoloco::server
