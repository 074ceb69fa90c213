#include "server/kernels/commit.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "common/base/random.h"
#include "common/codec/delta_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/kernels/outer_step_reference.h"

namespace autoloco::server {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kValues = kBlockValues + 1000;  // two blocks
constexpr Coding kLossy = {.codec = Codec::kRms4, .step = 1.5};
constexpr Coding kLossless = {.codec = Codec::kFp32};

std::vector<float> Draw(std::uint64_t stream, double scale) {
  const RandomStream random(3, stream);
  std::vector<float> values(kValues);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(scale * random.Normal(i));
  return values;
}

std::string Join(const std::vector<std::string>& blocks) {
  std::string payload;
  for (const std::string& block : blocks) payload += block;
  return payload;
}

std::vector<float> Decoded(const std::vector<std::string>& blocks, Codec codec) {
  const std::string payload = Join(blocks);
  std::vector<float> values(kValues);
  EXPECT_TRUE(DecodeVector(std::as_bytes(std::span<const char>(payload)), codec, values).ok());
  return values;
}

class CommitTest : public ::testing::Test {
 protected:
  // One round with these deltas, equal weights.
  absl::StatusOr<CommitResult> Run(const std::vector<std::vector<float>>& deltas, const Coding& broadcast) {
    payloads_.clear();
    for (const auto& delta : deltas) payloads_.push_back(EncodeVector(delta, Codec::kFp32, 1));
    return RunPayloads(broadcast);
  }
  absl::StatusOr<CommitResult> RunPayloads(const Coding& broadcast) {
    std::vector<Contribution> contributions;
    for (const std::string& payload : payloads_) {
      contributions.push_back(
          {std::as_bytes(std::span<const char>(payload)), Codec::kFp32, 1.0 / static_cast<double>(payloads_.size())});
    }
    const std::span<float> view = IsLossless(broadcast.codec) ? std::span<float>() : std::span<float>(view_);
    return Commit({contributions, coefficients_, broadcast}, {params_, momentum_, view, guard_}, &pool_);
  }

  WorkPool pool_{2};
  OuterCoefficients coefficients_{0.7, 0.9, true};
  std::vector<std::string> payloads_;
  std::vector<float> params_ = Draw(0, 1);
  std::vector<float> momentum_ = std::vector<float>(kValues);
  std::vector<float> view_ = params_;
  ViewGuard* guard_ = nullptr;
};

// Makes every change and remembers what the block was before and after.
class RecordingGuard final : public ViewGuard {
 public:
  explicit RecordingGuard(const std::vector<float>& view) : view_(view) {}
  void Change(std::size_t block, absl::FunctionRef<void()> change) override {
    const MutexLock lock(&mutex_);
    const std::vector<float> before = view_;
    change();
    const std::size_t begin = block * kBlockValues;
    for (std::size_t i = 0; i < kValues; ++i) {
      const bool inside = i >= begin && i < begin + BlockSize(kValues, block);
      (inside ? changed : changed_elsewhere) += view_[i] != before[i] ? 1 : 0;
    }
    blocks.push_back(block);
  }

  std::vector<std::size_t> blocks;
  std::size_t changed = 0;
  std::size_t changed_elsewhere = 0;

 private:
  Mutex mutex_;
  const std::vector<float>& view_;
};

TEST_F(CommitTest, TheViewMovesByWhatIsSentAndTheParametersAreExact) {
  std::vector<float> params = params_;
  std::vector<float> momentum = momentum_;
  std::vector<float> held_by_workers = view_;
  for (std::uint64_t round = 1; round <= 3; ++round) {
    const std::vector<std::vector<float>> deltas = {Draw(2 * round, 1e-3), Draw(2 * round + 1, 1e-3)};
    const std::vector<float> view = view_;
    const CommitResult result = Run(deltas, kLossy).value();
    const std::vector<float> sent = Decoded(result.blocks, kLossy.codec);
    for (std::size_t i = 0; i < kValues; ++i) held_by_workers[i] += sent[i];
    EXPECT_EQ(view_, held_by_workers);
    EXPECT_EQ(result.view_digest, Digest128(view_));
    EXPECT_EQ(result.params_digest, Digest128(params_));
    EXPECT_NE(result.view_digest, result.params_digest);
    // The broadcast takes nothing from the parameters.
    std::vector<Contribution> contributions;
    for (const std::string& payload : payloads_) {
      contributions.push_back({std::as_bytes(std::span<const char>(payload)), Codec::kFp32, 0.5});
    }
    ASSERT_TRUE(ApplyOuterStepReference(contributions, coefficients_, params, momentum, view).ok());
    EXPECT_EQ(params_, params);
    EXPECT_EQ(momentum_, momentum);
  }
}

// Workers that start from theta + e and pull 0.3 e back: the step is as if they had started from theta.
TEST_F(CommitTest, WhatComesBackOfTheBroadcastsRoundingIsTakenOut) {
  ASSERT_TRUE(Run({Draw(1, 1e-3)}, kLossy).ok());
  std::vector<float> without = params_;
  std::vector<float> momentum = momentum_;
  std::vector<std::vector<float>> deltas = {Draw(2, 1e-3), Draw(3, 1e-3)};
  std::vector<std::string> payloads;
  std::vector<Contribution> contributions;
  double echo = 0;
  for (std::vector<float>& delta : deltas) {
    payloads.push_back(EncodeVector(delta, Codec::kFp32, 1));
    for (std::size_t i = 0; i < kValues; ++i) delta[i] += 0.3F * (view_[i] - params_[i]);
  }
  for (std::size_t i = 0; i < kValues; ++i) echo += std::pow(0.3 * (view_[i] - params_[i]), 2);
  for (const std::string& payload : payloads) {
    contributions.push_back({std::as_bytes(std::span<const char>(payload)), Codec::kFp32, 0.5});
  }
  ASSERT_TRUE(ApplyOuterStep(contributions, coefficients_, without, momentum, &pool_).ok());
  ASSERT_TRUE(Run(deltas, kLossy).ok());
  double left = 0;
  for (std::size_t i = 0; i < kValues; ++i) left += std::pow(static_cast<double>(momentum_[i]) - momentum[i], 2);
  EXPECT_LT(left, 0.02 * echo);
}

TEST_F(CommitTest, WhatABroadcastLacksComesWithTheNextOnes) {
  coefficients_ = {1, 0, true};
  ASSERT_TRUE(Run({Draw(1, 1e-3)}, kLossy).ok());
  const auto distance = [this] {
    double sum = 0;
    for (std::size_t i = 0; i < kValues; ++i) sum += std::pow(static_cast<double>(params_[i]) - view_[i], 2);
    return std::sqrt(sum / kValues);
  };
  double before = distance();
  EXPECT_GT(before, 1e-4);  // step 1.5 is coarse
  for (int round = 0; round < 4; ++round) {
    ASSERT_TRUE(Run({std::vector<float>(kValues, 0)}, kLossy).ok());  // nothing new
    EXPECT_LT(distance(), 0.6 * before);
    before = distance();
  }
}

TEST_F(CommitTest, TheViewChangesUnderItsGuardOnly) {
  const std::vector<float> before = view_;
  RecordingGuard guard(view_);
  guard_ = &guard;
  const CommitResult result = Run({Draw(1, 1e-3)}, kLossy).value();
  EXPECT_THAT(guard.blocks, ::testing::UnorderedElementsAre(0, 1));
  EXPECT_EQ(guard.changed_elsewhere, 0u);
  std::size_t changed = 0;
  for (std::size_t i = 0; i < kValues; ++i) changed += view_[i] != before[i] ? 1 : 0;
  EXPECT_EQ(guard.changed, changed) << "and all that changed, changed there";
  EXPECT_GT(changed, kValues / 10);
  EXPECT_EQ(result.view_digest, Digest128(view_));
}

TEST_F(CommitTest, ALosslessBroadcastIsTheParameters) {
  const CommitResult result = Run({Draw(1, 1e-3), Draw(2, 1e-3)}, kLossless).value();
  EXPECT_EQ(Decoded(result.blocks, Codec::kFp32), params_);
  EXPECT_EQ(result.params_digest, Digest128(params_));
  EXPECT_EQ(result.view_digest, result.params_digest);
  EXPECT_EQ(result.coding.squared_error, 0);
}

TEST_F(CommitTest, ReportsWhatTheBroadcastCosts) {
  const CommitResult result = Run({Draw(1, 1e-3)}, kLossy).value();
  EXPECT_EQ(result.coding.values, kValues);
  EXPECT_EQ(result.coding.bytes, Join(result.blocks).size());
  EXPECT_NEAR(result.coding.snr_db(), 7.3, 0.3);
}

TEST_F(CommitTest, ARunThatDivergedSaysSo) {
  std::vector<float> delta(kValues, 0);
  delta[kValues - 1] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(Run({delta}, kLossy)->statistics.finite);
}

TEST_F(CommitTest, ADifferenceThatCannotBeSentIsNotFinite) {
  params_[5] = 3e38F;
  view_[5] = -3e38F;  // both finite, but not what lies between them
  EXPECT_FALSE(Run({std::vector<float>(kValues, 0)}, kLossy)->statistics.finite);
}

TEST_F(CommitTest, ADamagedPayloadIsNamed) {
  payloads_ = {EncodeVector(Draw(1, 1e-3), Codec::kFp32, 1), EncodeVector(Draw(2, 1e-3), Codec::kFp32, 1)};
  payloads_[1].back() = static_cast<char>(payloads_[1].back() ^ 1);
  const absl::Status status = RunPayloads(kLossy).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("contribution 1: block 1"));
}

TEST_F(CommitTest, NonsenseChangesNothing) {
  const std::vector<float> params = params_;
  const std::vector<float> view = view_;
  payloads_ = {"no payload"};
  EXPECT_EQ(RunPayloads(kLossy).status().code(), absl::StatusCode::kInvalidArgument);
  payloads_.clear();
  EXPECT_EQ(RunPayloads(kLossy).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(params_, params);
  EXPECT_EQ(view_, view);
}

}  // namespace
}  // namespace autoloco::server
