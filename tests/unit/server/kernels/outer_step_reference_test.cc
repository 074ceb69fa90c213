#include "server/kernels/outer_step_reference.h"

#include <string>

#include "gtest/gtest.h"

namespace autoloco::server {
namespace {

Contribution Make(const std::string& payload, double weight) {
  return {std::as_bytes(std::span<const char>(payload)), Codec::kFp32, weight};
}

// The reference itself against numbers worked out by hand: eta 0.5, mu 0.5, D = 0.25 * 4 + 0.75 * 8 = 7.
TEST(OuterStepReferenceTest, ByHand) {
  const std::string first = EncodeVector(std::vector<float>{4.0f}, Codec::kFp32, 1);
  const std::string second = EncodeVector(std::vector<float>{8.0f}, Codec::kFp32, 1);
  const std::vector<Contribution> contributions = {Make(first, 0.25), Make(second, 0.75)};
  for (const bool nesterov : {true, false}) {
    std::vector<float> params = {10.0f};
    std::vector<float> momentum = {2.0f};
    const auto statistics = ApplyOuterStepReference(contributions, {0.5, 0.5, nesterov}, params, momentum);
    ASSERT_TRUE(statistics.ok());
    EXPECT_EQ(momentum[0], 8.0f);                          // 0.5 * 2 + 7
    EXPECT_EQ(params[0], nesterov ? 10.0f - 5.5f : 6.0f);  // 7 + 0.5 * 8 = 11, halved; 8, halved
    EXPECT_EQ(statistics->delta_squared_norms, (std::vector<double>{16.0, 64.0}));
    EXPECT_EQ(statistics->mean_delta_squared_norm, 49.0);
    EXPECT_EQ(statistics->momentum_squared_norm, 64.0);
  }
}

TEST(OuterStepReferenceTest, AnErrorChangesNothing) {
  std::string payload = EncodeVector(std::vector<float>{4.0f}, Codec::kFp32, 1);
  payload.back() = static_cast<char>(payload.back() ^ 1);
  std::vector<float> params = {10.0f};
  std::vector<float> momentum = {2.0f};
  const std::vector<Contribution> contributions = {Make(payload, 1.0)};
  EXPECT_EQ(ApplyOuterStepReference(contributions, {}, params, momentum).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ApplyOuterStepReference({}, {}, params, momentum).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(params[0], 10.0f);
  EXPECT_EQ(momentum[0], 2.0f);
}

}  // namespace
}  // namespace autoloco::server
