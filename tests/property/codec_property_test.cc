// The codec on all tails and kinds of values: fp32 comes back bit for bit, bf16 within half a step of its last
// place, quantized values within half a unit.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/codec/delta_codec.h"
#include "gtest/gtest.h"

namespace autoloco {
namespace {

const std::size_t kSizes[] = {0, 1, 2, 3, 255, 4096, 65535, 65536, 65537, 131072, 200001};

// Kind 0: Gaussian; 1: any bits, NaN and infinity among them; 2: mostly zero.
std::vector<float> Draw(std::size_t count, int kind, std::uint64_t seed) {
  const RandomStream stream(seed, static_cast<std::uint64_t>(kind));
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (kind == 0) values[i] = static_cast<float>(stream.Normal(i));
    if (kind == 1) values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(stream.Bits(i)));
    if (kind == 2) values[i] = stream.Uniform(i) < 0.01 ? static_cast<float>(stream.Normal(i)) : 0.0f;
  }
  return values;
}

bool SameBits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

std::vector<float> RoundTrip(const std::vector<float>& values, Codec codec, int level) {
  const std::string payload = EncodeVector(values, codec, level);
  EXPECT_LE(payload.size(), MaxPayloadBytes(values.size(), codec));
  std::vector<float> decoded(values.size());
  const absl::Status status = DecodeVector(std::as_bytes(std::span<const char>(payload)), codec, decoded);
  EXPECT_TRUE(status.ok()) << status;
  return decoded;
}

TEST(CodecPropertyTest, Fp32IsLossless) {
  for (const std::size_t size : kSizes) {
    for (int kind = 0; kind < 3; ++kind) {
      const std::vector<float> values = Draw(size, kind, size);
      const std::vector<float> decoded = RoundTrip(values, Codec::kFp32, kind == 0 ? 3 : 1);
      EXPECT_TRUE(std::equal(values.begin(), values.end(), decoded.begin(), SameBits)) << size << " kind " << kind;
    }
  }
}

TEST(CodecPropertyTest, Bf16IsTheNearestOfItsKind) {
  for (const std::size_t size : kSizes) {
    for (int kind = 0; kind < 3; ++kind) {
      const std::vector<float> values = Draw(size, kind, size + 1);
      const std::vector<float> decoded = RoundTrip(values, Codec::kBf16, 3);
      for (std::size_t i = 0; i < size; ++i) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(decoded[i]) & 0xFFFFu, 0u);
        if (std::isnan(values[i])) {
          ASSERT_TRUE(std::isnan(decoded[i])) << i;
        } else if (std::isinf(decoded[i])) {
          ASSERT_GE(std::abs(values[i]), 0x1.FFp127f) << i;
        } else {
          // 8 significant bits: half a unit in the last place is at most 2^-8 of the magnitude.
          const float bound = std::max(std::abs(values[i]) * 0x1p-8f, 0x1p-134f);
          ASSERT_LE(std::abs(decoded[i] - values[i]), bound) << values[i];
        }
      }
    }
  }
}

TEST(CodecPropertyTest, Bf16IsIdempotent) {
  const std::vector<float> once = RoundTrip(Draw(70000, 0, 3), Codec::kBf16, 3);
  EXPECT_EQ(RoundTrip(once, Codec::kBf16, 3), once);
}

// The number of the unit of value `i` of a block of `count` values, from the README's text.
std::size_t UnitOf(std::size_t i, std::size_t count, std::size_t symbols_per_byte) {
  const std::size_t stride = (count + symbols_per_byte - 1) / symbols_per_byte;
  const std::size_t ranges = (stride + 4095) / 4096;
  return i / stride * ranges + i % stride / 4096;
}

// Through whole payloads: within half a unit of its range, or clipped to the range's largest symbol. The unit is found
// in the bytes, as a second implementation would.
TEST(CodecPropertyTest, QuantizedValuesAreWithinHalfAUnit) {
  const Coding codings[] = {{.codec = Codec::kInt8},
                            {.codec = Codec::kRms8, .step = 0.1},
                            {.codec = Codec::kRms4, .step = 0.75},
                            {.codec = Codec::kTernary, .step = 2.5}};
  for (const std::size_t size : kSizes) {
    for (const int kind : {0, 2}) {
      const std::vector<float> values = Draw(size, kind, size + 2);
      for (const Coding& coding : codings) {
        CodingReport report;
        const std::string payload = EncodeVector(values, coding, &report).value();
        ASSERT_LE(payload.size(), MaxPayloadBytes(size, coding.codec));
        ASSERT_EQ(report.bytes, payload.size());
        const auto bytes = std::as_bytes(std::span<const char>(payload));
        std::vector<float> decoded(size);
        ASSERT_TRUE(DecodeVector(bytes, coding.codec, decoded).ok());
        const auto offsets = IndexBlocks(bytes, size, coding.codec).value();
        for (std::size_t i = 0; i < size; ++i) {
          const std::size_t planes = coding.codec == Codec::kTernary ? 5 : coding.codec == Codec::kRms4 ? 2 : 1;
          const std::size_t block = i / kBlockValues;
          const std::size_t index = UnitOf(i % kBlockValues, BlockSize(size, block), planes);
          float unit = 0;
          std::memcpy(&unit, payload.data() + offsets[block] + 20 + 4 * index, 4);
          const float symbol_max = planes == 5 ? 1 : planes == 2 ? 7 : 127;
          const float nearest = std::clamp(values[i], -symbol_max * unit, symbol_max * unit);
          ASSERT_LE(std::abs(decoded[i] - nearest), 0.5F * unit * (1 + 1e-5F)) << values[i];
        }
      }
    }
  }
}

}  // namespace
}  // namespace autoloco
