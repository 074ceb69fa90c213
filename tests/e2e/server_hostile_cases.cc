// Pushes and layouts made to hurt: bombs, chunks out of place, other models, numbers that are none. One clean refusal
// each, no memory, and the server lives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/rpc/layout_proto.h"
#include "common/rpc/protocol.h"
#include "tests/e2e/server_fixture.h"

namespace autoloco::test {
namespace {

using ::testing::HasSubstr;

// A block as common/codec/README.md has it, stored as a zstd frame.
std::string Block(std::uint32_t index, const std::string& frame) {
  std::string block(12, '\0');
  const auto frame_bytes = static_cast<std::uint32_t>(frame.size());
  std::memcpy(block.data(), &index, 4);
  block[4] = 1;  // fp32
  std::memcpy(block.data() + 8, &frame_bytes, 4);
  const std::string hashed = block + frame;
  const std::uint64_t checksum = Hash64(std::as_bytes(std::span<const char>(hashed)));
  block.append(reinterpret_cast<const char*>(&checksum), 8);
  return block + frame;
}

std::string Compressed(std::size_t zeros) {
  const std::string text(zeros, '\0');
  std::string frame(ZSTD_compressBound(zeros), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), text.data(), zeros, 1));
  return frame;
}

class HostilePushTest : public ServerFixture {
 protected:
  void SetUp() override {
    StartServer();
    if (!HasFatalFailure()) JoinBoth();
  }
  absl::Status PushError(const std::string& payload) {
    return b_->client().Push(MakePush(b_->Header(assignment_b_, payload), payload)).status();
  }
};

TEST_F(HostilePushTest, BombsAreRefusedAndTakeNoMemory) {
  const std::vector<std::pair<const char*, std::string>> frames = {
      {"13 bytes that claim exabytes", std::string("\x28\xb5\x2f\xfd\xe0\x6c\x06\x06\x06\x63\x63\x63\x63", 13)},
      {"a few KB that inflate to 256 MiB", Compressed(std::size_t{256} << 20)},
      // A frame header without a content size, with a window of 2^31, and one run of zeros.
      {"a window of 2 GiB", std::string("\x28\xb5\x2f\xfd\x00\xa8\x03\x00\x08\x00", 10)},
      {"an empty frame", Compressed(0)},
  };
  const std::uint64_t before = ResidentBytes(server_.process->pid());
  for (const auto& [what, frame] : frames) {
    for (int times = 0; times < 5; ++times) {
      const absl::Status status = PushError(Block(0, frame) + Block(1, frame));
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << what << ": " << status;
    }
  }
  EXPECT_LT(ResidentBytes(server_.process->pid()), before + (std::size_t{64} << 20));
  ExpectUnharmed();
}

TEST_F(HostilePushTest, EveryKindOfDamageInABlockHeaderIsRefused) {
  const std::string good = EncodeVector(SomeDelta(0.01F), Codec::kFp32, 1);
  for (std::size_t byte = 0; byte < 20; ++byte) {
    std::string bad = good;
    bad[byte] ^= 0x40;
    const absl::StatusCode code = PushError(bad).code();
    EXPECT_TRUE(code == absl::StatusCode::kInvalidArgument || code == absl::StatusCode::kDataLoss) << byte;
  }
  ExpectUnharmed();
}

TEST_F(HostilePushTest, AnInfinityIsNamedWithItsTensor) {
  std::vector<float> delta = SomeDelta(0.01F);
  const TensorEntry& tensor = layout_.tensors()[5];
  delta[tensor.offset] = -std::numeric_limits<float>::infinity();
  const absl::StatusOr<v1::PushReply> reply = b_->PushDelta(assignment_b_, delta);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->outcome(), v1::PUSH_OUTCOME_NON_FINITE);
  EXPECT_THAT(reply->reason(), HasSubstr(tensor.spec.name + "[0]"));
  ExpectUnharmed();
}

TEST_F(HostilePushTest, AnAbsurdNumberIsAnOutlier) {
  std::vector<float> delta = SomeDelta(0.01F);
  delta[1000] = 1e38F;
  const absl::StatusOr<v1::PushReply> reply = b_->PushDelta(assignment_b_, delta);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->outcome(), v1::PUSH_OUTCOME_NORM_OUTLIER) << reply->reason();
  EXPECT_THAT(reply->reason(), HasSubstr("e+38"));
  ExpectUnharmed();
}

TEST_F(HostilePushTest, ChunksTwiceOverlappingOrOutOfOrderAreOutOfRange) {
  const std::string payload = EncodeVector(SomeDelta(0.01F), Codec::kFp32, 1);
  const std::vector<v1::PushRequest> good = MakePush(b_->Header(assignment_b_, payload), payload);
  ASSERT_GE(good.size(), 3u);
  std::vector<v1::PushRequest> twice = good;
  twice.insert(twice.begin() + 1, good[1]);
  std::vector<v1::PushRequest> swapped = good;
  std::swap(swapped[1], swapped[2]);
  std::vector<v1::PushRequest> overlapping = good;
  overlapping[2].mutable_chunk()->set_offset(good[2].chunk().offset() - 1);
  std::vector<v1::PushRequest> far = good;
  far[2].mutable_chunk()->set_offset(std::numeric_limits<std::uint64_t>::max());
  for (const auto& messages : {twice, swapped, overlapping, far}) {
    const absl::Status status = b_->client().Push(messages).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
  }
  ExpectUnharmed();
}

TEST_F(HostilePushTest, OneByteLessAndOneByteMore) {
  const std::string payload = EncodeVector(SomeDelta(0.01F), Codec::kFp32, 1);
  v1::PushHeader header = b_->Header(assignment_b_, payload);
  EXPECT_EQ(b_->client().Push(MakePush(header, payload.substr(0, payload.size() - 1))).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(b_->client().Push(MakePush(header, payload + "x")).status().code(), absl::StatusCode::kOutOfRange);
  ExpectUnharmed();
}

TEST_F(HostilePushTest, AnotherCodecThanTheRunsIsRefused) {
  const std::string payload = EncodeVector(SomeDelta(0.01F), Codec::kBf16, 1);
  v1::PushHeader header = b_->Header(assignment_b_, payload);
  header.set_codec(v1::CodecConfig::DELTA_BF16);
  EXPECT_EQ(b_->client().Push(MakePush(header, payload)).status().code(), absl::StatusCode::kInvalidArgument);
  header.set_codec(v1::CodecConfig::DELTA_FP32);  // says one thing, sends another
  EXPECT_EQ(b_->client().Push(MakePush(header, payload)).status().code(), absl::StatusCode::kInvalidArgument);
  header.set_codec(static_cast<v1::CodecConfig::Delta>(99));
  EXPECT_EQ(b_->client().Push(MakePush(header, payload)).status().code(), absl::StatusCode::kInvalidArgument);
  ExpectUnharmed();
}

TEST_F(HostilePushTest, APushOfSomebodyWhoNeverJoinedIsRefused) {
  const std::string payload = EncodeVector(SomeDelta(0.01F), Codec::kFp32, 1);
  v1::PushHeader header = b_->Header(assignment_b_, payload);
  header.mutable_identity()->set_worker("nobody");
  EXPECT_EQ(b_->client().Push(MakePush(header, payload)).status().code(), absl::StatusCode::kFailedPrecondition);
  header = b_->Header(assignment_b_, payload);
  header.mutable_identity()->set_incarnation(header.identity().incarnation() + 5);
  EXPECT_EQ(b_->client().Push(MakePush(header, payload)).status().code(), absl::StatusCode::kFailedPrecondition);
  header = b_->Header(assignment_b_, payload);
  header.set_round(header.round() + 7);
  EXPECT_FALSE(b_->client().Push(MakePush(header, payload)).ok());
  ExpectUnharmed();
}

TEST_F(HostilePushTest, EveryOtherModelIsRefusedByItsFirstDifference) {
  std::vector<TensorSpec> tensors;
  for (const TensorEntry& entry : layout_.tensors()) tensors.push_back(entry.spec);
  const std::string first = tensors[0].name;
  std::vector<std::pair<std::string, std::vector<TensorSpec>>> others;  // what the refusal names
  others.emplace_back(first, tensors);
  std::swap(others.back().second[0].shape[0], others.back().second[0].shape[1]);  // transposed
  others.emplace_back("unknown.weight", tensors);
  others.back().second[1].name = "unknown.weight";
  others.emplace_back(tensors.back().name, tensors);
  others.back().second.pop_back();  // missing
  others.emplace_back("one.more", tensors);
  others.back().second.push_back({"one.more", {7}});
  others.emplace_back(first, tensors);
  std::swap(others.back().second[0], others.back().second[1]);  // another order
  for (const auto& [name, specs] : others) {
    const absl::StatusOr<Layout> other = Layout::Make(specs);
    ASSERT_TRUE(other.ok()) << other.status();
    const absl::StatusOr<std::unique_ptr<RawWorker>> joined = RawWorker::Join(server_.address, "c", layout_, *other);
    ASSERT_TRUE(joined.ok()) << joined.status();
    const absl::Status status = (*joined)->session().Finish();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
  ExpectUnharmed();
}

}  // namespace
}  // namespace autoloco::test
