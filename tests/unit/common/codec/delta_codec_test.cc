#include "common/codec/delta_codec.h"

#include <bit>
#include <cmath>

#include "common/codec/block_format.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/common/codec/codec_blocks.h"

namespace autoloco {
namespace {

using ::testing::HasSubstr;

using test::Bytes;
using test::Compress;
using test::Gaussian;
using test::MakeBlock;

// What decoding `payload` as `count` fp32 values says.
absl::Status DecodeFp32(const std::string& payload, std::size_t count) {
  return test::DecodeStatus(payload, count, Codec::kFp32);
}

// Three values do not shrink, so the bytes are fixed by the format alone: plane by plane, low bytes first.
TEST(DeltaCodecTest, RawBlockToTheByte) {
  const std::vector<float> values = {1.0f, -2.5f, std::bit_cast<float>(0x12345678u)};
  const std::string fp32("\x00\x00\x78\x00\x00\x56\x80\x20\x34\x3f\xc0\x12", 12);
  EXPECT_EQ(EncodeVector(values, Codec::kFp32, 3), MakeBlock(0, 1, 1, 0, fp32));
  const std::string bf16("\x80\x20\x34\x3f\xc0\x12", 6);
  EXPECT_EQ(EncodeVector(values, Codec::kBf16, 3), MakeBlock(0, 2, 1, 0, bf16));
}

// A block written by hand with plain zstd decodes: the body is one frame over the planes.
TEST(DeltaCodecTest, ZstdBlockFromASecondWriter) {
  const std::vector<float> values(1000, 1.0f);
  std::string planes(4000, '\0');
  for (std::size_t i = 0; i < 1000; ++i) {
    planes[2000 + i] = '\x80';
    planes[3000 + i] = '\x3f';
  }
  std::vector<float> decoded(1000);
  ASSERT_TRUE(DecodeVector(Bytes(MakeBlock(0, 1, 0, 0, Compress(planes))), Codec::kFp32, decoded).ok());
  EXPECT_EQ(decoded, values);
}

TEST(DeltaCodecTest, Bf16RoundsToNearestEven) {
  const auto round_trip = [](std::uint32_t bits) {
    const std::vector<float> values = {std::bit_cast<float>(bits)};
    std::vector<float> decoded(1);
    EXPECT_TRUE(DecodeVector(Bytes(EncodeVector(values, Codec::kBf16, 3)), Codec::kBf16, decoded).ok());
    return std::bit_cast<std::uint32_t>(decoded[0]);
  };
  EXPECT_EQ(round_trip(0x3F800000), 0x3F800000u);
  EXPECT_EQ(round_trip(0x3F807FFF), 0x3F800000u);  // below half
  EXPECT_EQ(round_trip(0x3F808000), 0x3F800000u);  // half, to even: down
  EXPECT_EQ(round_trip(0x3F818000), 0x3F820000u);  // half, to even: up
  EXPECT_EQ(round_trip(0x3F808001), 0x3F810000u);  // above half
  EXPECT_EQ(round_trip(0xBF818000), 0xBF820000u);
  EXPECT_EQ(round_trip(0x80000000), 0x80000000u);  // -0
  EXPECT_EQ(round_trip(0x00018000), 0x00020000u);  // subnormal
  EXPECT_EQ(round_trip(0x7F800000), 0x7F800000u);  // infinity
  EXPECT_EQ(round_trip(0x7F7FFFFF), 0x7F800000u);  // the largest float is nearer to 2^128
  for (const std::uint32_t nan : {0x7F800001u, 0x7FFFFFFFu, 0xFF800001u, 0x7FC00000u}) {
    EXPECT_TRUE(std::isnan(std::bit_cast<float>(round_trip(nan)))) << nan;
    EXPECT_EQ(round_trip(nan) >> 31, nan >> 31);
  }
}

TEST(DeltaCodecTest, ShrinksWhatIsEasyAndKeepsTheBoundOnWhatIsNot) {
  const std::vector<float> zeros(100000, 0.0f);
  EXPECT_LT(EncodeVector(zeros, Codec::kFp32, 3).size(), 200u);
  const std::vector<float> gaussian = Gaussian(100000, 1);
  EXPECT_LT(EncodeVector(gaussian, Codec::kFp32, 3).size(), 365000u);  // the exponents' plane compresses
  EXPECT_LT(EncodeVector(gaussian, Codec::kBf16, 3).size(), 165000u);
  std::vector<float> noise(70000);
  for (std::size_t i = 0; i < noise.size(); ++i)
    noise[i] = std::bit_cast<float>(static_cast<std::uint32_t>(Mix(5, 0, i)));
  EXPECT_EQ(EncodeVector(noise, Codec::kFp32, 3).size(), MaxPayloadBytes(70000, Codec::kFp32));
}

TEST(DeltaCodecTest, SameInputSameBytes) {
  const std::vector<float> values = Gaussian(70000, 2);
  const std::string payload = EncodeVector(values, Codec::kFp32, 3);
  EXPECT_EQ(EncodeVector(values, Codec::kFp32, 3), payload);
  BlockEncoder encoder(Codec::kFp32, 3);  // a context that has been used gives the same bytes as a fresh one
  std::string scratch;
  encoder.Append(5, std::span(values).subspan(100, 1000), &scratch);
  std::string again;
  encoder.Append(0, std::span(values).first(kBlockValues), &again);
  encoder.Append(1, std::span(values).subspan(kBlockValues), &again);
  EXPECT_EQ(again, payload);
}

TEST(DeltaCodecTest, IndexGivesEachBlock) {
  const std::vector<float> values = Gaussian(2 * kBlockValues + 5, 3);
  const std::string payload = EncodeVector(values, Codec::kBf16, 3);
  const auto offsets = IndexBlocks(Bytes(payload), values.size(), Codec::kBf16).value();
  ASSERT_EQ(offsets.size(), 4u);
  EXPECT_EQ(offsets[0], 0u);
  EXPECT_EQ(offsets[3], payload.size());
  EXPECT_EQ(payload[offsets[1]], 1);
  EXPECT_EQ(payload[offsets[2]], 2);
  EXPECT_EQ(IndexBlocks({}, 0, Codec::kFp32).value(), std::vector<std::uint64_t>{0});
}

TEST(DeltaCodecTest, RefusesHeadersThatLie) {
  const std::string raw(12, 'x');
  ASSERT_TRUE(DecodeFp32(MakeBlock(0, 1, 1, 0, raw), 3).ok());
  const auto refusal = [](const std::string& payload) {
    const absl::Status status = DecodeFp32(payload, 3);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(refusal(MakeBlock(1, 1, 1, 0, raw)), "block 0: want its index, got 1");
  EXPECT_EQ(refusal(MakeBlock(0, 2, 1, 0, raw)), "block 0: want codec 1, got 2");
  EXPECT_EQ(refusal(MakeBlock(0, 9, 1, 0, raw)), "block 0: want codec 1, got 9");
  EXPECT_EQ(refusal(MakeBlock(0, 1, 2, 0, raw)), "block 0: want stored 0 or 1, got 2");
  EXPECT_EQ(refusal(MakeBlock(0, 1, 1, 7, raw)), "block 0: want zero in the reserved field, got 7");
  EXPECT_EQ(refusal(MakeBlock(0, 1, 1, 0, raw + "x")), "block 0: want 12 raw bytes, got 13");
  EXPECT_EQ(refusal(MakeBlock(0, 1, 1, 0, raw.substr(1))), "block 0: want 12 raw bytes, got 11");
  EXPECT_EQ(refusal(MakeBlock(0, 1, 0, 0, raw)), "block 0: want fewer than 12 compressed bytes, got 12");
  EXPECT_EQ(refusal(MakeBlock(0, 1, 1, 0, raw) + "x"), "want 32 bytes in 1 blocks, got 33");
  EXPECT_EQ(refusal(""), "a payload of 0 bytes cannot hold 1 blocks");
}

TEST(DeltaCodecTest, RefusesAPayloadOfAnotherSize) {
  const std::string payload = EncodeVector(Gaussian(70000, 4), Codec::kFp32, 3);
  EXPECT_FALSE(DecodeFp32(payload, 70001).ok());
  EXPECT_FALSE(DecodeFp32(payload, 69999).ok());
  EXPECT_FALSE(DecodeFp32(payload, 65536).ok());
  EXPECT_FALSE(DecodeFp32(payload, 140000).ok());
  EXPECT_FALSE(DecodeFp32(payload, 0).ok());
  // A count that would need 4 GB of offsets is refused before memory is taken.
  const absl::Status status = IndexBlocks(Bytes(payload), std::uint64_t{1} << 45, Codec::kFp32).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot hold"));
}

TEST(DeltaCodecTest, RefusesReorderedAndRepeatedBlocks) {
  const std::vector<float> values = Gaussian(2 * kBlockValues, 6);
  const std::string payload = EncodeVector(values, Codec::kBf16, 3);
  const std::size_t cut = IndexBlocks(Bytes(payload), values.size(), Codec::kBf16).value()[1];
  const std::string first = payload.substr(0, cut);
  const std::string second = payload.substr(cut);
  for (const std::string& bad : {second + first, first + first, second + second, first}) {
    EXPECT_FALSE(IndexBlocks(Bytes(bad), values.size(), Codec::kBf16).ok());
  }
}

TEST(DeltaCodecTest, RefusesFramesThatLie) {
  const std::string planes(400, 'a');
  const std::string good = Compress(planes);
  ASSERT_TRUE(DecodeFp32(MakeBlock(0, 1, 0, 0, good), 100).ok());
  const auto refusal = [](const std::string& body, std::size_t count) {
    const absl::Status status = DecodeFp32(MakeBlock(0, 1, 0, 0, body), count);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(refusal(good, 101), "block 0: the zstd frame does not declare 404 bytes");
  EXPECT_EQ(refusal(good, 99), "block 0: the zstd frame does not declare 396 bytes");
  EXPECT_EQ(refusal("not zstd at all", 100), "block 0: the zstd frame does not declare 400 bytes");
  EXPECT_EQ(refusal("", 100), "block 0: the zstd frame does not declare 400 bytes");
  EXPECT_EQ(refusal(good + good, 100), "block 0: the body is not exactly one zstd frame");
  EXPECT_EQ(refusal(good + "x", 100), "block 0: the body is not exactly one zstd frame");
  EXPECT_EQ(refusal(good.substr(0, good.size() - 1), 100), "block 0: the body is not exactly one zstd frame");
  const std::string skippable("\x50\x2a\x4d\x18\x04\x00\x00\x00....", 12);
  EXPECT_EQ(refusal(skippable + good, 100), "block 0: the zstd frame does not declare 400 bytes");
}

TEST(DeltaCodecTest, AFlippedBodyByteIsDataLoss) {
  std::string payload = EncodeVector(Gaussian(100, 8), Codec::kFp32, 3);
  payload.back() = static_cast<char>(payload.back() ^ 1);
  EXPECT_EQ(DecodeFp32(payload, 100), absl::DataLossError("block 0: checksum does not match"));
}

TEST(DeltaCodecTest, EveryCutIsRefused) {
  const std::vector<float> values = Gaussian(200, 9);
  const std::string good = EncodeVector(values, Codec::kFp32, 3);
  BlockDecoder decoder;
  std::vector<float> decoded(values.size());
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    const std::string bad = good.substr(0, cut);
    EXPECT_FALSE(DecodeFp32(bad, values.size()).ok()) << cut;
    EXPECT_FALSE(decoder.Decode(Bytes(bad), Codec::kFp32, 0, decoded).ok()) << cut;
  }
  EXPECT_FALSE(decoder.Decode(Bytes(good + "x"), Codec::kFp32, 0, decoded).ok());
  EXPECT_TRUE(decoder.Decode(Bytes(good), Codec::kFp32, 0, decoded).ok());
}

// Damage that carries a right checksum reaches zstd itself: an error or any values, never a crash.
TEST(DeltaCodecTest, DamagedFramesWithRightChecksumsAreHarmless) {
  std::string planes;
  for (int i = 0; i < 400; ++i) planes.push_back(static_cast<char>("abcabcabd"[i % 9] + i / 100));
  const std::string good = Compress(planes);
  int refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      refused += DecodeFp32(MakeBlock(0, 1, 0, 0, bad), 100).ok() ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(DeltaCodecTest, RefusesAnUnknownCodec) {
  std::vector<float> values(3);
  EXPECT_FALSE(DecodeVector(Bytes(std::string(100, 'x')), static_cast<Codec>(7), values).ok());
  BlockDecoder decoder;
  EXPECT_FALSE(decoder.Decode(Bytes(std::string(100, 'x')), static_cast<Codec>(7), 0, values).ok());
}

TEST(CodecOfTest, IsWhatTheFirstBlockNames) {
  const std::vector<float> values(70000, 0.5f);
  for (const Codec codec : {Codec::kFp32, Codec::kBf16}) {
    std::string payload = EncodeVector(values, codec, 1);
    const std::span<const std::byte> bytes = std::as_bytes(std::span<const char>(payload));
    EXPECT_EQ(CodecOf(bytes), codec);
    EXPECT_EQ(CodecOf(bytes.first(kBlockHeaderBytes - 1)), std::nullopt);
    payload[4] = 77;
    EXPECT_EQ(CodecOf(bytes), std::nullopt);
  }
}

}  // namespace
}  // namespace autoloco
