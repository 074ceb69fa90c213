#include "common/codec/byte_planes.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace autoloco {
namespace {

TEST(BytePlanesTest, LowBytesFirst) {
  const std::vector<float> values = {std::bit_cast<float>(0x12345678u), std::bit_cast<float>(0x9ABCDEF0u)};
  std::vector<std::uint8_t> planes(8);
  SplitPlanes(values, Codec::kFp32, planes.data());
  EXPECT_EQ(planes, (std::vector<std::uint8_t>{0x78, 0xF0, 0x56, 0xDE, 0x34, 0xBC, 0x12, 0x9A}));
  std::vector<float> back(2);
  JoinPlanes(planes.data(), Codec::kFp32, back);
  EXPECT_EQ(back, values);
}

TEST(BytePlanesTest, AddsWithAWeight) {
  const std::vector<float> values = {1.5F, -2.0F, 0.1F};
  for (const Codec codec : {Codec::kFp32, Codec::kBf16}) {
    std::vector<std::uint8_t> planes(3 * PlaneCount(codec));
    SplitPlanes(values, codec, planes.data());
    std::vector<float> sum = {1.0F, 2.0F, 3.0F};
    AddPlanes(planes.data(), codec, 0.3F, sum);
    for (std::size_t i = 0; i < 3; ++i) {
      const float product = 0.3F * Decoded(values[i], codec);
      EXPECT_EQ(sum[i], static_cast<float>(i + 1) + product) << i;
    }
  }
}

TEST(BytePlanesTest, DecodedIsWhatAReaderMakes) {
  EXPECT_EQ(Decoded(0.1F, Codec::kFp32), 0.1F);
  EXPECT_EQ(Decoded(0.1F, Codec::kBf16), std::bit_cast<float>(0x3DCD0000u));
  EXPECT_TRUE(std::isinf(Decoded(std::numeric_limits<float>::max(), Codec::kBf16)));
}

}  // namespace
}  // namespace autoloco
