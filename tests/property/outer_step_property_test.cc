// The fused kernel against the scalar reference, bit for bit: every tail, number of workers, codec and number of
// threads, equal and unequal weights, several rounds in a row.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "server/kernels/outer_step.h"
#include "server/kernels/outer_step_reference.h"

namespace autoloco::server {
namespace {

const std::size_t kSizes[] = {1, 2, 7, 65535, 65536, 65537, 200001};

std::vector<float> Draw(std::size_t count, std::uint64_t stream, double scale) {
  const RandomStream random(11, stream);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>((random.Uniform(i) - 0.5) * scale);
  return values;
}

// The deltas of one round, encoded.
struct RoundOfDeltas {
  std::vector<std::string> payloads;
  std::vector<Contribution> contributions;
};

RoundOfDeltas MakeRound(std::size_t size, std::size_t workers, bool uniform, std::uint64_t round) {
  RoundOfDeltas made;
  made.payloads.reserve(workers);
  double total = 0;
  for (std::size_t w = 0; w < workers; ++w) total += static_cast<double>(w + 1);
  for (std::size_t w = 0; w < workers; ++w) {
    const Codec codec = w % 3 == 2 ? Codec::kBf16 : Codec::kFp32;
    made.payloads.push_back(EncodeVector(Draw(size, 100 * round + w + 1, 0.01), codec, 1));
    const double weight = uniform ? 1.0 / static_cast<double>(workers) : static_cast<double>(w + 1) / total;
    made.contributions.push_back({std::as_bytes(std::span<const char>(made.payloads.back())), codec, weight});
  }
  return made;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

void ExpectClose(double got, double want) { EXPECT_NEAR(got, want, 1e-12 * std::abs(want)); }

void ExpectClose(const OuterStepStatistics& got, const OuterStepStatistics& want) {
  ASSERT_EQ(got.delta_squared_norms.size(), want.delta_squared_norms.size());
  for (std::size_t i = 0; i < want.delta_squared_norms.size(); ++i) {
    ExpectClose(got.delta_squared_norms[i], want.delta_squared_norms[i]);
  }
  ExpectClose(got.mean_delta_squared_norm, want.mean_delta_squared_norm);
  ExpectClose(got.momentum_squared_norm, want.momentum_squared_norm);
  ExpectClose(got.params_squared_norm, want.params_squared_norm);
  EXPECT_EQ(got.finite, want.finite);
}

const OuterCoefficients kNesterov{0.7, 0.9, true};
const OuterCoefficients kPlainMomentum{0.7, 0.9, false};
const OuterCoefficients kCorrected{0.7, 0.9, true, CorrectedStep{2.3, 0.7, 0.81, 0.93}};

OuterCoefficients Robust(Combining kind, double trim_share = 0.2) {
  OuterCoefficients coefficients = kCorrected;
  coefficients.combine = {kind, trim_share};
  return coefficients;
}

// Three rounds by kernel and by reference from the same start.
void Compare(std::size_t size, std::size_t workers, bool uniform, const OuterCoefficients& coefficients,
             WorkPool* pool) {
  std::vector<float> params = Draw(size, 0, 1.0);
  std::vector<float> momentum(size, 0.0f);
  std::vector<float> want_params = params;
  std::vector<float> want_momentum = momentum;
  for (std::uint64_t round = 1; round <= 3; ++round) {
    const RoundOfDeltas deltas = MakeRound(size, workers, uniform, round);
    const auto got = ApplyOuterStep(deltas.contributions, coefficients, params, momentum, pool);
    const auto want = ApplyOuterStepReference(deltas.contributions, coefficients, want_params, want_momentum);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(SameBits(params, want_params)) << size << " values, " << workers << " workers, round " << round;
    ASSERT_TRUE(SameBits(momentum, want_momentum)) << size << " values, " << workers << " workers, round " << round;
    ExpectClose(*got, *want);
  }
}

TEST(OuterStepPropertyTest, EqualsTheReferenceOnEveryTail) {
  WorkPool pool(2);
  for (const std::size_t size : kSizes) {
    for (const std::size_t workers : {1u, 2u, 3u}) {
      Compare(size, workers, true, kNesterov, &pool);
      Compare(size, workers, false, workers != 2 ? kNesterov : kPlainMomentum, &pool);
      Compare(size, workers, workers == 2, kCorrected, &pool);
    }
  }
}

TEST(OuterStepPropertyTest, EqualsTheReferenceForEveryNumberOfWorkers) {
  WorkPool pool(3);
  for (std::size_t workers = 1; workers <= 9; ++workers) {
    for (const bool uniform : {true, false}) {
      for (const OuterCoefficients& coefficients : {kNesterov, kPlainMomentum, kCorrected}) {
        Compare(1003, workers, uniform, coefficients, &pool);
      }
    }
  }
}

TEST(OuterStepPropertyTest, MedianAndTrimmedMeanEqualTheReference) {
  WorkPool pool(3);
  for (std::size_t workers = 1; workers <= 11; ++workers) {
    for (const bool uniform : {true, false}) {
      Compare(1025, workers, uniform, Robust(Combining::kMedian), &pool);
      for (const double share : {0.0, 0.1, 0.2, 0.49}) {
        Compare(1025, workers, uniform, Robust(Combining::kTrimmedMean, share), &pool);
      }
    }
  }
  for (const std::size_t size : kSizes) Compare(size, 5, false, Robust(Combining::kMedian), &pool);
}

// Another order of the workers is the same result, bit for bit.
TEST(OuterStepPropertyTest, VotesHaveNoOrder) {
  WorkPool pool(2);
  RoundOfDeltas deltas = MakeRound(70001, 7, false, 1);
  for (const OuterCoefficients& coefficients : {Robust(Combining::kMedian), Robust(Combining::kTrimmedMean)}) {
    std::vector<float> first = Draw(70001, 0, 1.0);
    std::vector<float> momentum(first.size(), 0.0f);
    ASSERT_TRUE(ApplyOuterStep(deltas.contributions, coefficients, first, momentum, &pool).ok());
    std::vector<float> second = Draw(70001, 0, 1.0);
    momentum.assign(second.size(), 0.0f);
    std::reverse(deltas.contributions.begin(), deltas.contributions.end());
    ASSERT_TRUE(ApplyOuterStep(deltas.contributions, coefficients, second, momentum, &pool).ok());
    EXPECT_TRUE(SameBits(first, second));
  }
}

TEST(OuterStepPropertyTest, DoesNotDependOnThreads) {
  const RoundOfDeltas deltas = MakeRound(600001, 4, false, 1);
  std::vector<float> first_params;
  OuterStepStatistics first;
  for (std::size_t threads = 1; threads <= 4; ++threads) {
    WorkPool pool(threads);
    std::vector<float> params = Draw(600001, 0, 1.0);
    std::vector<float> momentum = Draw(600001, 99, 0.01);
    const OuterStepStatistics got = ApplyOuterStep(deltas.contributions, {}, params, momentum, &pool).value();
    if (threads == 1) {
      first_params = params;
      first = got;
    }
    EXPECT_TRUE(SameBits(params, first_params)) << threads;
    EXPECT_EQ(got.delta_squared_norms, first.delta_squared_norms);  // to the last bit
    EXPECT_EQ(got.mean_delta_squared_norm, first.mean_delta_squared_norm);
    EXPECT_EQ(got.momentum_squared_norm, first.momentum_squared_norm);
    EXPECT_EQ(got.params_squared_norm, first.params_squared_norm);
  }
}

}  // namespace
}  // namespace autoloco::server
