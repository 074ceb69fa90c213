// Decoders of every codec on bytes that lie: refused with a status, without taking memory, never a crash.
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/codec/block_format.h"
#include "common/codec/delta_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/common/codec/codec_blocks.h"

namespace autoloco {
namespace {

using test::Bytes;
using test::Compress;
using test::DecodeStatus;
using test::Gaussian;
using test::MakeBlock;
using test::UnitBytes;
using ::testing::HasSubstr;

constexpr Codec kCodecs[] = {Codec::kFp32, Codec::kBf16, Codec::kInt8, Codec::kRms8, Codec::kRms4, Codec::kTernary};

Coding CodingOf(Codec codec) { return {.codec = codec, .step = codec == Codec::kTernary ? 2.5 : 1.0}; }

// Units of a block, for the codecs that have them: 1 each, but 0 where a range has no values.
std::string Units(Codec codec, std::size_t count) {
  if (!IsQuantized(codec)) return "";
  std::vector<float> units(UnitCount(PackingOf(codec), count));
  for (std::size_t i = 0; i < units.size(); ++i) units[i] = ValuesOfUnit(PackingOf(codec), count, i).size == 0 ? 0 : 1;
  return UnitBytes(units);
}

std::string ZstdBlock(Codec codec, std::size_t count, const std::string& frame) {
  return MakeBlock(0, static_cast<std::uint8_t>(codec), 0, 0, Units(codec, count) + frame);
}

// Coded bytes of a full block.
std::size_t FullBytes(Codec codec) {
  return MaxPayloadBytes(kBlockValues, codec) - 20 - Units(codec, kBlockValues).size();
}

std::string LittleEndian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

// A frame that inflates to `blocks` times 128 KiB of zeros, four bytes each, and says that it holds `declared`.
std::string InflatingFrame(std::uint64_t declared, std::size_t blocks) {
  std::string frame("\x28\xb5\x2f\xfd\xe0", 5);  // one segment, eight bytes of content size
  frame += LittleEndian(declared, 8);
  for (std::size_t i = 0; i < blocks; ++i) {
    frame += LittleEndian((128U << 10) << 3 | 1U << 1 | (i + 1 == blocks ? 1U : 0U), 3) + std::string(1, '\0');
  }
  return frame;
}

std::int64_t PeakKilobytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// 13 bytes whose header claims 7e18 bytes (found in the wild).
TEST(DeltaCodecHostileTest, ThirteenByteBomb) {
  const std::string bomb("\x28\xb5\x2f\xfd\xe0\x6c\x06\x06\x06\x63\x63\x63\x63", 13);
  const std::int64_t before = PeakKilobytes();
  for (const Codec codec : kCodecs) {
    for (const std::size_t count : {100u, 65536u}) {
      const absl::Status status = DecodeStatus(ZstdBlock(codec, count, bomb), count, codec);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr("does not declare"));
    }
  }
  EXPECT_LT(PeakKilobytes() - before, 16 << 10);
}

TEST(DeltaCodecHostileTest, EightKilobytesThatInflateTo256Megabytes) {
  constexpr std::uint64_t kTruth = std::uint64_t{256} << 20;
  const std::int64_t before = PeakKilobytes();
  const std::string honest = InflatingFrame(kTruth, 2048);
  ASSERT_LT(honest.size(), 8300u);
  for (const Codec codec : kCodecs) {
    EXPECT_EQ(DecodeStatus(ZstdBlock(codec, kBlockValues, honest), kBlockValues, codec).code(),
              absl::StatusCode::kInvalidArgument);
    const absl::Status lying =
        DecodeStatus(ZstdBlock(codec, kBlockValues, InflatingFrame(FullBytes(codec), 2048)), kBlockValues, codec);
    EXPECT_EQ(lying.code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_LT(PeakKilobytes() - before, 64 << 10);
}

TEST(DeltaCodecHostileTest, WindowOfTwoGigabytes) {
  const std::int64_t before = PeakKilobytes();
  for (const Codec codec : kCodecs) {
    // Not one segment, windowLog 31 (exponent 21, mantissa 0), the right content size, one run of zeros.
    const std::size_t bytes = FullBytes(codec);
    std::string frame("\x28\xb5\x2f\xfd\x80\xa8", 6);
    frame += LittleEndian(bytes, 4);
    for (std::size_t left = bytes; left > 0;) {
      const std::size_t run = std::min<std::size_t>(left, 128 << 10);
      left -= run;
      frame += LittleEndian(run << 3 | 1U << 1 | (left == 0 ? 1U : 0U), 3) + std::string(1, '\0');
    }
    const absl::Status status = DecodeStatus(ZstdBlock(codec, kBlockValues, frame), kBlockValues, codec);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("not of one segment"));
  }
  EXPECT_LT(PeakKilobytes() - before, 64 << 10);
}

// Dictionary, checksum and skippable frames are nothing a writer makes.
TEST(DeltaCodecHostileTest, UnusualFrames) {
  const std::string good = Compress(std::string(400, 'a'));
  ASSERT_TRUE(DecodeStatus(ZstdBlock(Codec::kFp32, 100, good), 100, Codec::kFp32).ok());
  for (const int bit : {0, 1, 2, 3, 4, 5}) {
    std::string bad = good;
    bad[4] = static_cast<char>(bad[4] ^ (1 << bit));
    EXPECT_FALSE(DecodeStatus(ZstdBlock(Codec::kFp32, 100, bad), 100, Codec::kFp32).ok()) << bit;
  }
  const std::string skippable("\x50\x2a\x4d\x18\x04\x00\x00\x00....", 12);
  EXPECT_FALSE(DecodeStatus(ZstdBlock(Codec::kFp32, 100, good + skippable), 100, Codec::kFp32).ok());
  EXPECT_FALSE(DecodeStatus(ZstdBlock(Codec::kFp32, 100, skippable), 100, Codec::kFp32).ok());
}

TEST(DeltaCodecHostileTest, EveryFlippedBitOfASmallPayloadIsRefused) {
  for (const Codec codec : kCodecs) {
    // Noise is stored raw, constant values go through zstd.
    for (const std::vector<float>& values : {Gaussian(9, 7), std::vector<float>(500, 0.25F)}) {
      const std::string good = EncodeVector(values, CodingOf(codec), nullptr).value();
      ASSERT_TRUE(DecodeStatus(good, values.size(), codec).ok());
      for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
        std::string bad = good;
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
        const absl::Status status = DecodeStatus(bad, values.size(), codec);
        EXPECT_TRUE(status.code() == absl::StatusCode::kDataLoss || status.code() == absl::StatusCode::kInvalidArgument)
            << "bit " << bit << ": " << status;
      }
    }
  }
}

TEST(DeltaCodecHostileTest, EveryCutIsRefused) {
  for (const Codec codec : kCodecs) {
    const std::string good = EncodeVector(Gaussian(200, 9), CodingOf(codec), nullptr).value();
    for (std::size_t cut = 0; cut < good.size(); ++cut) {
      EXPECT_FALSE(DecodeStatus(good.substr(0, cut), 200, codec).ok()) << cut;
    }
    EXPECT_FALSE(DecodeStatus(good + "x", 200, codec).ok());
  }
}

// Damage that carries a right checksum reaches zstd and the unpacking: an error or finite values, never a crash.
TEST(DeltaCodecHostileTest, DamageWithRightChecksumsIsHarmless) {
  for (const Codec codec : {Codec::kInt8, Codec::kRms8, Codec::kRms4, Codec::kTernary}) {
    const std::string good = EncodeVector(std::vector<float>(400, 0.25F), CodingOf(codec), nullptr).value();
    int refused = 0;
    for (std::size_t bit = 20 * 8; bit < good.size() * 8; ++bit) {
      std::string body = good.substr(20);
      body[bit / 8 - 20] = static_cast<char>(body[bit / 8 - 20] ^ (1 << (bit % 8)));
      const std::string bad =
          MakeBlock(0, static_cast<std::uint8_t>(codec), static_cast<std::uint8_t>(good[5]), 0, body);
      std::vector<float> values(400);
      if (!DecodeVector(Bytes(bad), codec, values).ok()) {
        ++refused;
        continue;
      }
      for (const float value : values) ASSERT_TRUE(std::isfinite(value)) << bit;
    }
    EXPECT_GT(refused, 0);
  }
}

TEST(DeltaCodecHostileTest, UnitsThatNoWriterMakes) {
  for (const Codec codec : {Codec::kInt8, Codec::kRms8, Codec::kRms4, Codec::kTernary}) {
    const std::string symbols(codec == Codec::kTernary ? 1 : codec == Codec::kRms4 ? 2 : 4, '\x77');
    const auto id = static_cast<std::uint8_t>(codec);
    const std::string units = Units(codec, 4);
    ASSERT_TRUE(DecodeStatus(MakeBlock(0, id, 1, 0, units + symbols), 4, codec).ok());
    for (std::size_t at = 0; at < units.size(); at += 4) {
      for (const float unit : {-1.0F, -0.0F, 1e-40F, std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
        std::string bad = units;
        bad.replace(at, 4, UnitBytes({unit}));
        const absl::Status status = DecodeStatus(MakeBlock(0, id, 1, 0, bad + symbols), 4, codec);
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        EXPECT_THAT(std::string(status.message()), HasSubstr("want a unit of 0 or from"));
      }
    }
  }
}

// Four ternary values lie in four planes: the fifth has a range without values.
TEST(DeltaCodecHostileTest, AUnitOfNoValues) {
  const absl::Status status =
      DecodeStatus(MakeBlock(0, 6, 1, 0, UnitBytes({1, 1, 1, 1, 1}) + "\x77"), 4, Codec::kTernary);
  EXPECT_EQ(status.message(), "block 0: want a unit of 0 for a range without values, got 1");
}

TEST(DeltaCodecHostileTest, SizesThatDoNotFitTheLayout) {
  const auto refusal = [](const std::string& payload, std::size_t count, Codec codec) {
    const absl::Status status = DecodeStatus(payload, count, codec);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const std::string units = Units(Codec::kRms4, 4);  // two
  EXPECT_EQ(refusal(MakeBlock(0, 5, 1, 0, units + "xyz"), 4, Codec::kRms4), "block 0: want 10 raw bytes, got 11");
  EXPECT_EQ(refusal(MakeBlock(0, 5, 1, 0, units + "x"), 4, Codec::kRms4), "block 0: want 10 raw bytes, got 9");
  EXPECT_EQ(refusal(MakeBlock(0, 5, 0, 0, units + "xy"), 4, Codec::kRms4),
            "block 0: want fewer than 10 compressed bytes, got 10");
  EXPECT_EQ(refusal(MakeBlock(0, 5, 0, 0, units.substr(1)), 4, Codec::kRms4),
            "block 0: want units of 8 bytes, got a body of 7");
  EXPECT_EQ(refusal(MakeBlock(0, 6, 1, 0, Units(Codec::kTernary, 4) + "\xf3"), 4, Codec::kTernary),
            "block 0: want bytes of five ternary symbols, 0 to 242, got a larger one");
  EXPECT_EQ(refusal(MakeBlock(0, 3, 1, 0, Units(Codec::kInt8, 4) + "wxyz"), 4, Codec::kRms8),
            "block 0: want codec 4, got 3");
}

}  // namespace
}  // namespace autoloco
