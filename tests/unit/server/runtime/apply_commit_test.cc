#include "server/runtime/apply_commit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "common/codec/delta_codec.h"

namespace autoloco::server {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kValues = 2 * kBlockValues + 100;

BroadcastMethod MethodOf(Codec codec, double step = 1.5) { return {static_cast<std::uint8_t>(codec), step, 1}; }

std::vector<float> Delta(Round round) {
  std::vector<float> delta(kValues);
  for (std::size_t i = 0; i < kValues; ++i) delta[i] = std::sin(static_cast<float>(i * (round + 3)));
  return delta;
}

class ApplyCommitTest : public ::testing::Test {
 protected:
  absl::StatusOr<CommitOutcome> Apply(Round round, const CommitMethod& method, std::size_t threads = 2) {
    const std::string payload = EncodeVector(Delta(round), Codec::kFp32, 1);
    const CommitDelta delta = {std::as_bytes(std::span<const char>(payload)), "a", 1};
    WorkPool pool(threads);
    return ApplyCommit({round, {&delta, 1}, {}, method}, &parameters_, &pool);
  }
  static std::string BytesOf(const EncodedPayload& payload) {
    return absl::StrJoin(payload.Pieces(0, payload.payload_bytes()), "");
  }

  ParameterStore parameters_ = *ParameterStore::Allocate(*Layout::Make({{"t", {kValues}}}));
};

TEST_F(ApplyCommitTest, LosslessBroadcastsAreTheParameters) {
  const CommitOutcome outcome = *Apply(4, {});
  EXPECT_EQ(parameters_.view(), nullptr);
  EXPECT_EQ(outcome.params_digest, parameters_.ParamsDigest());
  EXPECT_EQ(outcome.view_digest, outcome.params_digest);
  EXPECT_EQ(outcome.payload->header().form, PullForm::kFull);
  EXPECT_EQ(outcome.payload->header().version, 5);
  EXPECT_EQ(outcome.payload->header().params_digest, outcome.params_digest);
  EXPECT_EQ(outcome.coding.squared_error, 0);
  EXPECT_EQ(BytesOf(*outcome.payload), EncodeVector(parameters_.params(), Codec::kFp32, 1));
}

// What a worker does with the broadcasts gives, bit for bit, the view of the server.
TEST_F(ApplyCommitTest, WorkersThatAddTheBroadcastsHoldTheView) {
  for (const Codec codec : {Codec::kRms4, Codec::kRms8, Codec::kTernary, Codec::kInt8, Codec::kBf16}) {
    parameters_ = *ParameterStore::Allocate(*Layout::Make({{"t", {kValues}}}));
    std::vector<float> held(kValues);
    for (Round round = 0; round < 3; ++round) {
      const CommitOutcome outcome = *Apply(round, {.broadcast = MethodOf(codec, codec == Codec::kTernary ? 2.5 : 1)});
      ASSERT_EQ(outcome.payload->header().form, PullForm::kBroadcast);
      ASSERT_EQ(outcome.payload->header().codec, codec);
      EXPECT_EQ(outcome.coding.bytes, outcome.payload->payload_bytes());
      EXPECT_GT(outcome.coding.squared_error, 0);
      BlockDecoder decoder;
      for (std::uint64_t block = 0; block < outcome.payload->block_count(); ++block) {
        const std::uint64_t begin = outcome.payload->OffsetOf(block);
        const std::string bytes =
            absl::StrJoin(outcome.payload->Pieces(begin, outcome.payload->OffsetOf(block + 1) - begin), "");
        const std::span<float> values = std::span<float>(held).subspan(block * kBlockValues, BlockSize(kValues, block));
        ASSERT_TRUE(decoder
                        .DecodeAdd(std::as_bytes(std::span<const char>(bytes)), codec,
                                   static_cast<std::uint32_t>(block), 1, values)
                        .ok());
      }
      EXPECT_EQ(Digest128(std::span<const float>(held)), outcome.view_digest) << static_cast<int>(codec);
      EXPECT_EQ(outcome.view_digest, parameters_.ViewDigest());
      EXPECT_NE(outcome.view_digest, outcome.params_digest);
      std::vector<float> first(kBlockValues);
      EXPECT_EQ(parameters_.view()->Read(0, first), round + 1);
    }
  }
}

TEST_F(ApplyCommitTest, ThreadsDoNotShow) {
  const CommitMethod method = {.broadcast = MethodOf(Codec::kRms4)};
  const CommitOutcome one = *Apply(0, method, 1);
  parameters_ = *ParameterStore::Allocate(*Layout::Make({{"t", {kValues}}}));
  const CommitOutcome four = *Apply(0, method, 4);
  EXPECT_EQ(one.view_digest, four.view_digest);
  EXPECT_EQ(BytesOf(*one.payload), BytesOf(*four.payload));
}

TEST_F(ApplyCommitTest, TheViewFollowsTheMethod) {
  ASSERT_TRUE(Apply(0, {.broadcast = MethodOf(Codec::kRms4)}).ok());
  ASSERT_NE(parameters_.view(), nullptr);
  const CommitOutcome outcome = *Apply(1, {});
  EXPECT_EQ(parameters_.view(), nullptr);
  EXPECT_EQ(outcome.payload->header().form, PullForm::kFull);
}

TEST_F(ApplyCommitTest, AMethodThatIsNoneIsRefused) {
  for (const BroadcastMethod& method :
       {BroadcastMethod{0, 1.5, 1}, BroadcastMethod{77, 1.5, 1}, MethodOf(Codec::kRms4, 0),
        MethodOf(Codec::kRms4, std::nan("")), MethodOf(Codec::kTernary, 5)}) {
    const absl::Status status = Apply(0, {.broadcast = method}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("no way to code broadcasts"));
  }
}

}  // namespace
}  // namespace autoloco::server
