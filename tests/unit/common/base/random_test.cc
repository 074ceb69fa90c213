#include "common/base/random.h"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace autoloco {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

// Worked out by a second implementation; a change of these changes every run that starts from a seed.
TEST(RandomTest, GoldenValues) {
  EXPECT_EQ(Mix(0, 0, 0), 0x7DFD00E4F94D1921u);
  EXPECT_EQ(Mix(0, 0, 1), 0xCA8155746A9AE01Du);
  EXPECT_EQ(Mix(1, 0, 0), 0x274069F44FCD3C96u);
  EXPECT_EQ(Mix(0, 1, 0), 0x7FDCA528E1BD981Cu);
  EXPECT_EQ(Mix(42, 7, 1000000), 0xA40EE38415DBE9A6u);
  EXPECT_EQ(Mix(kMax, kMax, kMax), 0x576AA215C20C6AEDu);
  const RandomStream stream(42, 7);
  EXPECT_EQ(stream.Uniform(0), 0.5442229801443829);
  EXPECT_NEAR(stream.Normal(0), -0.7095866565236645, 1e-15);
  EXPECT_NEAR(stream.Normal(1), -0.844558600191404, 1e-15);
  EXPECT_NEAR(stream.Normal(2), -0.9996564699336166, 1e-15);
  EXPECT_NEAR(stream.Normal(3), 0.4676121723338235, 1e-15);
}

TEST(RandomTest, UniformHasTheMomentsOfUniform) {
  const RandomStream stream(1, 2);
  constexpr int kCount = 200000;
  double sum = 0;
  double squares = 0;
  double lag = 0;
  for (int i = 0; i < kCount; ++i) {
    const double u = stream.Uniform(static_cast<std::uint64_t>(i));
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    squares += u * u;
    lag += (u - 0.5) * (stream.Uniform(static_cast<std::uint64_t>(i) + 1) - 0.5);
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.003);          // standard error 0.0006
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.003);  // 0.0007
  EXPECT_NEAR(lag / kCount, 0.0, 0.001);          // 0.0002
}

TEST(RandomTest, NormalHasTheMomentsOfNormal) {
  const RandomStream stream(3, 4);
  constexpr int kPairs = 100000;
  double moments[5] = {};
  double product = 0;
  for (int i = 0; i < kPairs; ++i) {
    const auto [a, b] = stream.NormalPair(static_cast<std::uint64_t>(i));
    product += a * b;
    for (const double x : {a, b}) {
      double power = 1;
      for (double& moment : moments) {
        moment += power;
        power *= x;
      }
    }
  }
  const double n = moments[0];
  EXPECT_NEAR(moments[1] / n, 0, 0.012);  // standard error 0.0022
  EXPECT_NEAR(moments[2] / n, 1, 0.016);  // 0.0032
  EXPECT_NEAR(moments[3] / n, 0, 0.045);  // 0.0087
  EXPECT_NEAR(moments[4] / n, 3, 0.11);   // 0.022
  EXPECT_NEAR(product / kPairs, 0, 0.016);
}

TEST(RandomTest, StreamsAndSeedsDiffer) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (std::uint64_t stream = 0; stream < 20; ++stream) {
      for (std::uint64_t counter = 0; counter < 20; ++counter) seen.insert(Mix(seed, stream, counter));
    }
  }
  EXPECT_EQ(seen.size(), 8000u);
}

TEST(PermutationTest, GoldenValues) {
  std::vector<std::uint64_t> first;
  std::vector<std::uint64_t> second;
  for (std::uint64_t i = 0; i < 10; ++i) first.push_back(Permutation(10, 1).At(i));
  for (std::uint64_t i = 0; i < 10; ++i) second.push_back(Permutation(10, 2).At(i));
  EXPECT_EQ(first, (std::vector<std::uint64_t>{0, 6, 5, 3, 4, 8, 2, 9, 7, 1}));
  EXPECT_EQ(second, (std::vector<std::uint64_t>{0, 5, 7, 6, 9, 1, 8, 2, 3, 4}));
  EXPECT_EQ(Permutation(1000003, 5).At(0), 26615u);
  EXPECT_EQ(Permutation(1000003, 5).At(3), 292889u);
}

TEST(PermutationTest, IsABijection) {
  std::vector<std::uint64_t> sizes = {1000, 12345, 65535, 65536, 65537};
  for (std::uint64_t n = 1; n <= 130; ++n) sizes.push_back(n);
  for (std::uint64_t power = 256; power <= 4096; power *= 2) sizes.insert(sizes.end(), {power - 1, power, power + 1});
  for (const std::uint64_t n : sizes) {
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, kMax}) {
      const Permutation permutation(n, seed);
      ASSERT_EQ(permutation.n(), n);
      std::vector<bool> hit(n, false);
      for (std::uint64_t i = 0; i < n; ++i) {
        const std::uint64_t to = permutation.At(i);
        ASSERT_LT(to, n);
        ASSERT_FALSE(hit[to]) << "n " << n << ": " << to << " twice";
        hit[to] = true;
      }
    }
  }
}

TEST(PermutationTest, LargeRangesStayInRangeAndApart) {
  for (const std::uint64_t n : {(std::uint64_t{1} << 40) + 1, std::uint64_t{1} << 62}) {
    const Permutation permutation(n, 9);
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      const std::uint64_t to = permutation.At(n - 1 - i);
      ASSERT_LT(to, n);
      seen.insert(to);
    }
    EXPECT_EQ(seen.size(), 1000u);
  }
}

// Neighbours must land far apart: the mean distance of two uniform places is n / 3.
TEST(PermutationTest, Shuffles) {
  constexpr std::uint64_t n = 100000;
  const Permutation permutation(n, 77);
  double distance = 0;
  double correlation = 0;
  for (std::uint64_t i = 0; i + 1 < n; ++i) {
    const double here = static_cast<double>(permutation.At(i));
    distance += std::abs(here - static_cast<double>(permutation.At(i + 1)));
    correlation += (here / n - 0.5) * (static_cast<double>(i) / n - 0.5) * 12;
  }
  EXPECT_NEAR(distance / n / n, 1.0 / 3, 0.01);
  EXPECT_NEAR(correlation / n, 0, 0.015);
}

}  // namespace
}  // namespace autoloco
