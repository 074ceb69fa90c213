#include "common/codec/codec.h"

#include <cmath>

#include "gtest/gtest.h"

namespace autoloco {
namespace {

TEST(CodecTest, BlockArithmetic) {
  EXPECT_EQ(BlockCount(0), 0u);
  EXPECT_EQ(BlockCount(1), 1u);
  EXPECT_EQ(BlockCount(65536), 1u);
  EXPECT_EQ(BlockCount(65537), 2u);
  EXPECT_EQ(BlockSize(65537, 0), 65536u);
  EXPECT_EQ(BlockSize(65537, 1), 1u);
}

TEST(CodecTest, KnownAndQuantized) {
  EXPECT_FALSE(IsKnown(static_cast<Codec>(0)));
  EXPECT_FALSE(IsKnown(static_cast<Codec>(7)));
  for (const Codec codec : {Codec::kFp32, Codec::kBf16}) EXPECT_TRUE(IsKnown(codec) && !IsQuantized(codec));
  for (const Codec codec : {Codec::kInt8, Codec::kRms8, Codec::kRms4, Codec::kTernary}) {
    EXPECT_TRUE(IsKnown(codec) && IsQuantized(codec));
  }
}

TEST(CodecTest, PackingFollowsTheStep) {
  EXPECT_EQ(QuantizedCodec(kStepMin), Codec::kRms8);
  EXPECT_EQ(QuantizedCodec(0.7499), Codec::kRms8);
  EXPECT_EQ(QuantizedCodec(0.75), Codec::kRms4);
  EXPECT_EQ(QuantizedCodec(kStepDefault), Codec::kRms4);
  EXPECT_EQ(QuantizedCodec(2.4999), Codec::kRms4);
  EXPECT_EQ(QuantizedCodec(2.5), Codec::kTernary);
  EXPECT_EQ(QuantizedCodec(kStepMax), Codec::kTernary);
}

TEST(CodecTest, ReportsAddUp) {
  CodingReport report = {.values = 100, .bytes = 25, .squared_signal = 40, .squared_error = 3};
  EXPECT_DOUBLE_EQ(report.bits_per_value(), 2);
  report += {.values = 100, .bytes = 75, .squared_signal = 60, .squared_error = 7};
  EXPECT_DOUBLE_EQ(report.bits_per_value(), 4);
  EXPECT_DOUBLE_EQ(report.snr_db(), 10);
  EXPECT_EQ(CodingReport().bits_per_value(), 0);
  EXPECT_TRUE(std::isinf((CodingReport{.values = 1, .bytes = 24, .squared_signal = 1, .squared_error = 0}).snr_db()));
}

}  // namespace
}  // namespace autoloco
