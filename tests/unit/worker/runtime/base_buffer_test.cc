#include "worker/runtime/base_buffer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/random.h"
#include "tests/support/fill_base.h"

namespace autoloco::worker {
namespace {

constexpr std::uint64_t kValues = 2 * kBlockValues + 10;  // three blocks
constexpr Coding kCoding = {.codec = Codec::kRms4, .step = 1.5};

std::span<const std::byte> Bytes(const std::string& block) { return std::as_bytes(std::span(block)); }

std::vector<float> Random(std::uint64_t stream) {
  std::vector<float> values(kValues);
  const RandomStream random(5, stream);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random.Normal(i));
  return values;
}

// A server's view, version by version: broadcasts_[v] turns views_[v - 1] into views_[v].
class BaseBufferTest : public ::testing::Test {
 protected:
  BaseBufferTest() : base_(BaseBuffer::Allocate(kValues).value()) {
    views_.push_back(Random(0));
    broadcasts_.emplace_back();
    for (std::uint64_t version = 1; version <= 3; ++version) {
      views_.push_back(views_.back());
      broadcasts_.emplace_back();
      const std::vector<float> step = Random(version);
      BlockEncoder encoder(kCoding);
      for (std::uint64_t index = 0; index < 3; ++index) {
        const std::uint64_t begin = index * kBlockValues;
        const std::uint64_t count = BlockSize(kValues, index);
        std::string block;
        EXPECT_TRUE(encoder
                        .EncodeAndAdd(static_cast<std::uint32_t>(index), std::span(step).subspan(begin, count),
                                      std::span(views_.back()).subspan(begin, count), &block)
                        .ok());
        broadcasts_.back().push_back(block);
      }
    }
  }
  std::string DigestOf(Version version) const { return Digest128(std::span<const float>(views_[version])); }
  absl::Status Put(std::uint64_t index, Version version) {
    const std::string block = CodedBlock(views_[version], index);
    return base_.Put(index, version, Bytes(block), &decoder_);
  }
  absl::Status Add(std::uint64_t index, Version version) {
    return base_.Add(index, Bytes(broadcasts_[version][index]), kCoding.codec, &decoder_);
  }
  // The transfer of all that is missing.
  void Broadcast(Version version) {
    base_.Begin(PullForm::kBroadcast, version);
    for (std::uint64_t index = 0; index < 3; ++index) ASSERT_TRUE(Add(index, version).ok());
    base_.End();
  }
  BaseBuffer::Held Whole(Version version) const {
    return {.version = version, .digest = DigestOf(version), .mixed = false};
  }

  std::vector<std::vector<float>> views_;
  std::vector<std::vector<std::string>> broadcasts_;
  BaseBuffer base_;
  BlockDecoder decoder_;
};

TEST_F(BaseBufferTest, HoldsNothingAtFirst) {
  EXPECT_EQ(base_.block_count(), 3u);
  EXPECT_EQ(base_.held(), BaseBuffer::Held());
  EXPECT_EQ(base_.unfinished(), std::nullopt);
}

TEST_F(BaseBufferTest, BroadcastsMakeItBitEqualToTheServersView) {
  FillBase(views_[0], 0, &base_);
  EXPECT_EQ(base_.held(), Whole(0));
  for (const Version version : {1, 2, 3}) {
    Broadcast(version);
    EXPECT_EQ(base_.held(), Whole(version));
    EXPECT_EQ(base_.unfinished(), std::nullopt);
  }
}

TEST_F(BaseBufferTest, BlocksOfSeveralVersionsBecomeOne) {
  base_.Begin(PullForm::kLive, 1);
  ASSERT_TRUE(Put(0, 1).ok());
  ASSERT_TRUE(Put(1, 2).ok());
  ASSERT_TRUE(Put(2, 3).ok());
  base_.End();
  EXPECT_EQ(base_.held(), (BaseBuffer::Held{.version = 1, .digest = "", .mixed = true}));
  EXPECT_EQ(base_.unfinished(), std::nullopt);
  Broadcast(2);
  EXPECT_EQ(base_.held(), (BaseBuffer::Held{.version = 2, .digest = "", .mixed = true}));
  Broadcast(3);
  EXPECT_EQ(base_.held(), Whole(3));
}

TEST_F(BaseBufferTest, ABroadcastThatWasCutGoesOnWithWhatIsMissing) {
  FillBase(views_[0], 0, &base_);
  base_.Begin(PullForm::kBroadcast, 1);
  ASSERT_TRUE(Add(0, 1).ok());
  base_.End();
  EXPECT_EQ(base_.held(), (BaseBuffer::Held{.version = 0, .digest = "", .mixed = true}));
  EXPECT_EQ(base_.unfinished(), (BaseBuffer::Unfinished{PullForm::kBroadcast, 1, 1}));
  EXPECT_EQ(base_.MissingBlocks(), (std::vector<ByteRange>{{1, 2}}));
  base_.Begin(PullForm::kBroadcast, 1);
  ASSERT_TRUE(Add(1, 1).ok());
  ASSERT_TRUE(Add(2, 1).ok());
  base_.End();
  EXPECT_EQ(base_.held(), Whole(1));
  EXPECT_EQ(base_.unfinished(), std::nullopt);
  EXPECT_TRUE(base_.MissingBlocks().empty());
}

TEST_F(BaseBufferTest, ABroadcastWhoseRestIsGoneComesAgainFromTheStart) {
  FillBase(views_[0], 0, &base_);
  base_.Begin(PullForm::kBroadcast, 1);
  ASSERT_TRUE(Add(0, 1).ok());
  base_.End();
  base_.Abandon();
  EXPECT_EQ(base_.unfinished(), std::nullopt);
  EXPECT_EQ(base_.held(), (BaseBuffer::Held{.version = 0, .digest = "", .mixed = true}));
  Broadcast(1);  // what was added is not added again
  EXPECT_EQ(base_.held(), Whole(1));
}

TEST_F(BaseBufferTest, ATransferOfAllBlocksThatWasCutGoesOn) {
  for (const PullForm form : {PullForm::kFull, PullForm::kLive}) {
    FillBase(views_[0], 0, &base_);
    base_.Begin(form, 2);
    ASSERT_TRUE(Put(0, 2).ok());
    base_.End();
    EXPECT_EQ(base_.held(), BaseBuffer::Held());
    EXPECT_EQ(base_.unfinished(), (BaseBuffer::Unfinished{form, 2, 1}));
    const Version now = form == PullForm::kLive ? 3 : 2;  // live parameters have moved on
    base_.Begin(form, now);
    ASSERT_TRUE(Put(1, now).ok());
    ASSERT_TRUE(Put(2, now).ok());
    base_.End();
    EXPECT_EQ(base_.unfinished(), std::nullopt);
    EXPECT_EQ(base_.held().version, 2u);
    EXPECT_EQ(base_.held().mixed, form == PullForm::kLive);
  }
}

TEST_F(BaseBufferTest, AnotherTransferOfAllBlocksBeginsAnew) {
  base_.Begin(PullForm::kFull, 1);
  ASSERT_TRUE(Put(0, 1).ok());
  base_.End();
  base_.Begin(PullForm::kFull, 2);
  base_.End();
  EXPECT_EQ(base_.unfinished(), (BaseBuffer::Unfinished{PullForm::kFull, 2, 0}));
  base_.Abandon();
  EXPECT_EQ(base_.held(), BaseBuffer::Held());
  EXPECT_EQ(base_.unfinished(), std::nullopt);
}

TEST_F(BaseBufferTest, DamagedBlocksChangeNothing) {
  FillBase(views_[0], 0, &base_);
  base_.Begin(PullForm::kBroadcast, 1);
  std::string damaged = broadcasts_[1][1];
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  EXPECT_EQ(base_.Add(1, Bytes(damaged), kCoding.codec, &decoder_).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(base_.Add(1, Bytes(broadcasts_[1][0]), kCoding.codec, &decoder_).code(),
            absl::StatusCode::kInvalidArgument);
  base_.End();
  EXPECT_EQ(base_.held(), Whole(0));
  EXPECT_EQ(base_.unfinished(), (BaseBuffer::Unfinished{PullForm::kBroadcast, 1, 0}));
  Broadcast(1);
  EXPECT_EQ(base_.held(), Whole(1));
}

TEST_F(BaseBufferTest, ABroadcastForOtherBlocksIsRefused) {
  base_.Begin(PullForm::kBroadcast, 1);
  EXPECT_EQ(Add(0, 1).code(), absl::StatusCode::kFailedPrecondition);  // it holds nothing
  base_.End();
  base_.Abandon();
  FillBase(views_[0], 0, &base_);
  base_.Begin(PullForm::kBroadcast, 2);
  EXPECT_EQ(Add(0, 2).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(BaseBufferTest, ABlockOfNoVersionIsRefused) {
  base_.Begin(PullForm::kLive, 0);
  const std::string block = CodedBlock(views_[0], 0);
  EXPECT_FALSE(base_.Put(0, ~Version{0}, Bytes(block), &decoder_).ok());
  EXPECT_TRUE(base_.Put(0, 0, Bytes(block), &decoder_).ok());
}

}  // namespace
}  // namespace autoloco::worker
