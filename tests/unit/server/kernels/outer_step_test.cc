#include "server/kernels/outer_step.h"

#include <cmath>
#include <limits>
#include <string>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace autoloco::server {
namespace {

using ::testing::HasSubstr;

Contribution Make(const std::string& payload, double weight) {
  return {std::as_bytes(std::span<const char>(payload)), Codec::kFp32, weight};
}

// Applies deltas with weights (equal ones when none are given) to one state.
class OuterStepTest : public ::testing::Test {
 protected:
  absl::StatusOr<OuterStepStatistics> Apply(const std::vector<std::vector<float>>& deltas,
                                            std::vector<double> weights = {}) {
    if (weights.empty()) weights.assign(deltas.size(), 1.0 / static_cast<double>(deltas.size()));
    std::vector<std::string> payloads;
    for (const auto& delta : deltas) payloads.push_back(EncodeVector(delta, Codec::kFp32, 1));
    std::vector<Contribution> contributions;
    for (std::size_t i = 0; i < payloads.size(); ++i) contributions.push_back(Make(payloads[i], weights[i]));
    return ApplyOuterStep(contributions, coefficients_, params_, momentum_, &pool_);
  }

  WorkPool pool_{2};
  OuterCoefficients coefficients_{0.7, 0.9, true};
  std::vector<float> params_ = {1.0f, -2.0f};
  std::vector<float> momentum_ = {0.0f, 0.0f};
};

void ExpectNear(const std::vector<float>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
}

// Worked out by hand, eta 0.7, mu 0.9. A delta is start minus end: a positive one takes the parameter down, to where
// the workers went.
//   D = (0.5, -1):   b = (0.5, -1),      D + mu b = (0.95, -1.9),     theta = (0.335, -0.67)
//   D = (0.25, 0.5): b = (0.7, -0.4),    D + mu b = (0.88, 0.14),     theta = (-0.281, -0.768)
//   D = (-1, 0):     b = (-0.37, -0.36), D + mu b = (-1.333, -0.324), theta = (0.6521, -0.5412)
TEST_F(OuterStepTest, ThreeNesterovStepsByHand) {
  ASSERT_TRUE(Apply({{0.5f, -1.0f}}).ok());
  ExpectNear(params_, {0.335, -0.67});
  ASSERT_TRUE(Apply({{0.25f, 0.5f}}).ok());
  ExpectNear(params_, {-0.281, -0.768});
  ASSERT_TRUE(Apply({{-1.0f, 0.0f}}).ok());
  ExpectNear(params_, {0.6521, -0.5412});
  ExpectNear(momentum_, {-0.37, -0.36});
}

TEST_F(OuterStepTest, ThreePlainMomentumStepsByHand) {
  coefficients_.nesterov = false;
  ASSERT_TRUE(Apply({{0.5f, -1.0f}}).ok());
  ExpectNear(params_, {0.65, -1.3});
  ASSERT_TRUE(Apply({{0.25f, 0.5f}}).ok());
  ExpectNear(params_, {0.16, -1.02});
  ASSERT_TRUE(Apply({{-1.0f, 0.0f}}).ok());
  ExpectNear(params_, {0.419, -0.768});
  ExpectNear(momentum_, {-0.37, -0.36});
}

//   D = (0.5, -1), b = (2, 4), a = 1.5, c = 0.25: a D + c b = (0.75 + 0.5, -1.5 + 1) = (1.25, -0.5)
//   theta = (1, -2) - 0.7 (1.25, -0.5), b = 0.75 (2, 4) + 0.5 (0.5, -1)
TEST_F(OuterStepTest, ACorrectedStepByHand) {
  coefficients_.corrected = CorrectedStep{1.5, 0.25, 0.75, 0.5};
  momentum_ = {2.0f, 4.0f};
  ASSERT_TRUE(Apply({{0.5f, -1.0f}}).ok());
  ExpectNear(params_, {1 - 0.7 * 1.25, -2 + 0.7 * 0.5});
  ExpectNear(momentum_, {1.75, 2.5});
}

TEST_F(OuterStepTest, WeightsOfUnequalWorkSumToMoreThanOne) {
  coefficients_ = {1, 0, true};
  ASSERT_TRUE(Apply({{0.5f, -1.0f}, {0.25f, 1.0f}}, {0.75, 0.75}).ok());  // equal weights, and yet no plain mean
  ExpectNear(params_, {1 - 0.5625, -2});
}

TEST_F(OuterStepTest, AClippedDeltaCountsLess) {
  coefficients_ = {1, 0, true};
  ASSERT_TRUE(Apply({{1.0f, 4.0f}, {2.0f, 2.0f}}, {0.25, 0.5}).ok());
  ExpectNear(params_, {1 - 1.25, -2 - 2});
}

TEST_F(OuterStepTest, TheMedianIgnoresOneWrongWorker) {
  coefficients_ = {1, 0, true};
  coefficients_.combine.kind = Combining::kMedian;
  ASSERT_TRUE(Apply({{1.0f, 4.0f}, {1e30f, -1e30f}, {2.0f, 2.0f}}).ok());
  ExpectNear(momentum_, {2, 2});
  ASSERT_TRUE(Apply({{1.0f, 4.0f}, {1e30f, -1e30f}, {2.0f, 2.0f}, {3.0f, 1.0f}}).ok());
  ExpectNear(momentum_, {2.5, 1.5});
}

TEST_F(OuterStepTest, TheTrimmedMeanCutsBothEnds) {
  coefficients_ = {1, 0, true};
  coefficients_.combine = {Combining::kTrimmedMean, 0.2};
  ASSERT_TRUE(Apply({{1.0f, 4.0f}, {1e30f, -1e30f}, {2.0f, 2.0f}, {3.0f, 1.0f}, {4.0f, 0.0f}}).ok());
  ExpectNear(momentum_, {3, 1});
}

// Twice the work at the same velocity is the same vote.
TEST_F(OuterStepTest, VotesAreOfEqualLength) {
  coefficients_ = {1, 0, true};
  coefficients_.combine.kind = Combining::kMedian;
  ASSERT_TRUE(Apply({{1.0f, 2.0f}, {2.0f, 4.0f}, {9.0f, 9.0f}}, {4.0 / 9, 2.0 / 9, 4.0 / 9}).ok());
  ExpectNear(momentum_, {4.0 / 3, 8.0 / 3});
}

TEST_F(OuterStepTest, MovesTowardsTheWorkersResult) {
  const std::vector<float> end = {0.0f, 3.0f};
  ASSERT_TRUE(Apply({{params_[0] - end[0], params_[1] - end[1]}}).ok());
  EXPECT_LT(params_[0], 1.0f);
  EXPECT_GT(params_[1], -2.0f);
}

// Deltas 1, 2 and 6 of three workers; the third is dropped: the mean is over the two that remain, 1.5, not 1.
TEST_F(OuterStepTest, TheMeanIsOverTheContributorsOnly) {
  coefficients_ = {1.0, 0.0, true};
  ASSERT_TRUE(Apply({{1.0f, 1.0f}, {2.0f, 2.0f}}).ok());
  EXPECT_EQ(params_, (std::vector<float>{-0.5f, -3.5f}));
  EXPECT_EQ(momentum_, (std::vector<float>{1.5f, 1.5f}));
  ASSERT_TRUE(Apply({{1.0f, 1.0f}, {2.0f, 2.0f}, {6.0f, 6.0f}}).ok());
  EXPECT_EQ(momentum_, (std::vector<float>{3.0f, 3.0f}));
}

TEST_F(OuterStepTest, WeightsCount) {
  coefficients_ = {1.0, 0.0, true};
  ASSERT_TRUE(Apply({{1.0f, 1.0f}, {2.0f, 2.0f}}, {0.25, 0.75}).ok());
  EXPECT_EQ(momentum_, (std::vector<float>{1.75f, 1.75f}));
  EXPECT_EQ(params_, (std::vector<float>{-0.75f, -3.75f}));
}

// One worker, eta 1, mu 0: theta becomes theta - (theta - theta_end), bit for bit, step after step.
TEST_F(OuterStepTest, OneWorkerWithUnitStepIsThePlainLoop) {
  constexpr std::size_t kCount = 70000;
  const RandomStream stream(1, 1);
  for (const bool nesterov : {true, false}) {
    coefficients_ = {1.0, 0.0, nesterov};
    params_.resize(kCount);
    for (std::size_t i = 0; i < kCount; ++i) params_[i] = static_cast<float>(stream.Normal(i));
    momentum_.assign(kCount, 0.0f);
    std::vector<float> plain = params_;
    for (std::size_t step = 1; step <= 3; ++step) {
      std::vector<float> delta(kCount);
      for (std::size_t i = 0; i < kCount; ++i) {
        const float end = plain[i] + static_cast<float>(stream.Normal(step * kCount + i) * 1e-3);
        delta[i] = params_[i] - end;
        plain[i] = plain[i] - (plain[i] - end);
      }
      ASSERT_TRUE(Apply({delta}).ok());
      ASSERT_EQ(params_, plain) << "step " << step;
    }
  }
}

TEST_F(OuterStepTest, Statistics) {
  coefficients_ = {1.0, 0.5, true};
  momentum_ = {2.0f, 0.0f};
  const OuterStepStatistics statistics = Apply({{1.0f, 0.0f}, {3.0f, 4.0f}}).value();
  EXPECT_EQ(statistics.delta_squared_norms, (std::vector<double>{1.0, 25.0}));
  EXPECT_EQ(statistics.mean_delta_squared_norm, 8.0);      // D = (2, 2)
  EXPECT_EQ(momentum_, (std::vector<float>{3.0f, 2.0f}));  // 0.5 b + D
  EXPECT_EQ(statistics.momentum_squared_norm, 13.0);
  EXPECT_EQ(params_, (std::vector<float>{-2.5f, -5.0f}));  // - (D + 0.5 b) = - (3.5, 3)
  EXPECT_EQ(statistics.params_squared_norm, 31.25);
  EXPECT_TRUE(statistics.finite);
}

TEST_F(OuterStepTest, SaysWhenTheResultIsNotFinite) {
  EXPECT_FALSE(Apply({{std::numeric_limits<float>::infinity(), 0.0f}})->finite);
  params_ = {1.0f, 1.0f};
  momentum_ = {0.0f, 0.0f};
  EXPECT_FALSE(Apply({{0.0f, std::nanf("")}})->finite);
  params_ = {3e38f, 1.0f};
  momentum_ = {0.0f, 0.0f};
  EXPECT_FALSE(Apply({{-3e38f, 0.0f}})->finite);  // overflows fp32
  params_ = {3e38f, 3e38f};
  momentum_ = {0.0f, 0.0f};
  EXPECT_TRUE(Apply({{0.0f, 0.0f}})->finite);  // its square does not overflow fp64
}

TEST_F(OuterStepTest, RefusesNonsenseAndChangesNothing) {
  const auto refusal = [this](const absl::StatusOr<OuterStepStatistics>& result) {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(params_, (std::vector<float>{1.0f, -2.0f}));
    EXPECT_EQ(momentum_, (std::vector<float>{0.0f, 0.0f}));
    return std::string(result.status().message());
  };
  const std::vector<float> d = {1.0f, 1.0f};
  EXPECT_EQ(refusal(Apply({})), "outer step: no contribution");
  EXPECT_EQ(refusal(Apply({d, d}, {20, 13})), "outer step: want weights that sum to at most 32, got 33");
  EXPECT_EQ(refusal(Apply({d, d}, {1.5, -0.5})), "outer step: contribution 1: want a positive weight, got -0.5");
  EXPECT_EQ(refusal(Apply({d, d}, {1.0, 0.0})), "outer step: contribution 1: want a positive weight, got 0");
  EXPECT_EQ(refusal(Apply({d}, {std::nan("")})), "outer step: contribution 0: want a positive weight, got nan");
  EXPECT_THAT(refusal(Apply({d, {1.0f, 2.0f, 3.0f}})), HasSubstr("contribution 1: block 0: want 8 raw bytes, got 12"));
  coefficients_.corrected = CorrectedStep{1, std::nan(""), 1, 1};
  EXPECT_THAT(refusal(Apply({d})), HasSubstr("finite scalars of the correction, got nan"));
  coefficients_.momentum = std::nan("");
  EXPECT_THAT(refusal(Apply({d})), HasSubstr("must be finite"));
}

TEST_F(OuterStepTest, DamageIsAnInternalError) {
  params_.assign(2 * kBlockValues, 1.0f);
  momentum_.assign(2 * kBlockValues, 0.0f);
  const std::string good = EncodeVector(std::vector<float>(params_.size(), 0.5f), Codec::kFp32, 1);
  std::string bad = good;
  bad.back() = static_cast<char>(bad.back() ^ 1);
  const std::vector<Contribution> contributions = {Make(good, 0.5), Make(bad, 0.5)};
  const absl::Status status = ApplyOuterStep(contributions, coefficients_, params_, momentum_, &pool_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(),
            "commit: contribution 1: block 1: checksum does not match; parameters are partly updated and must not be "
            "used");
}

TEST_F(OuterStepTest, CodecsMayDifferBetweenContributions) {
  coefficients_ = {1.0, 0.0, true};
  const std::vector<float> delta = {1.0f, 2.0f};
  const std::string fp32 = EncodeVector(delta, Codec::kFp32, 1);
  const std::string bf16 = EncodeVector(delta, Codec::kBf16, 1);
  std::vector<Contribution> contributions = {Make(fp32, 0.5), Make(bf16, 0.5)};
  contributions[1].codec = Codec::kBf16;
  ASSERT_TRUE(ApplyOuterStep(contributions, coefficients_, params_, momentum_, &pool_).ok());
  EXPECT_EQ(params_, (std::vector<float>{0.0f, -4.0f}));
}

TEST_F(OuterStepTest, NoParametersAreNoWork) {
  params_.clear();
  momentum_.clear();
  EXPECT_EQ(Apply({{}})->params_squared_norm, 0.0);
}

}  // namespace
}  // namespace autoloco::server
