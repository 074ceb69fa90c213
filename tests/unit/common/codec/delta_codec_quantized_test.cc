// Quantized codecs through encoder and decoder: bytes, reports, feedback, and the blocks at the edges.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/codec/delta_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/common/codec/codec_blocks.h"

namespace autoloco {
namespace {

using test::Bytes;
using test::Compress;
using test::Gaussian;
using test::MakeBlock;
using test::UnitBytes;

std::vector<Coding> QuantizedCodings() {
  return {{.codec = Codec::kInt8},
          {.codec = Codec::kRms8, .step = 0.5},
          {.codec = Codec::kRms4, .step = 1.5},
          {.codec = Codec::kTernary, .step = 2.5}};
}

std::vector<float> DecodeAll(const std::string& payload, std::size_t count, Codec codec) {
  std::vector<float> values(count);
  const absl::Status status = DecodeVector(Bytes(payload), codec, values);
  EXPECT_TRUE(status.ok()) << status;
  return values;
}

TEST(DeltaCodecQuantizedTest, PayloadBounds) {
  EXPECT_EQ(MaxPayloadBytes(65537, Codec::kFp32), 2u * 20 + 65537 * 4);
  EXPECT_EQ(MaxPayloadBytes(65537, Codec::kBf16), 2u * 20 + 65537 * 2);
  EXPECT_EQ(MaxPayloadBytes(65537, Codec::kInt8), 2u * 20 + (16 + 1) * 4 + 65537);
  EXPECT_EQ(MaxPayloadBytes(65539, Codec::kRms4), 2u * 20 + (16 + 2) * 4 + 32768 + 2);
  EXPECT_EQ(MaxPayloadBytes(65542, Codec::kTernary), 2u * 20 + (20 + 5) * 4 + 13108 + 2);
  EXPECT_EQ(MaxPayloadBytes(65536 + 8193, Codec::kRms4), 2u * 20 + (16 + 4) * 4 + 32768 + 4097);
  EXPECT_EQ(MaxPayloadBytes(0, Codec::kTernary), 0u);
}

// Few values do not shrink, so the bytes are fixed by the format alone: units, then symbols.
TEST(DeltaCodecQuantizedTest, RawBlocksToTheByte) {
  const std::vector<float> values = {3, -3, 3, -3};  // RMS 3
  const auto encode = [&](const Coding& coding) { return EncodeVector(values, coding, nullptr).value(); };
  EXPECT_EQ(encode({.codec = Codec::kInt8}),
            MakeBlock(0, 3, 1, 0, UnitBytes({static_cast<float>(3.0 / 127)}) + std::string("\x7f\x81\x7f\x81", 4)));
  EXPECT_EQ(encode({.codec = Codec::kRms8, .step = 0.5}),
            MakeBlock(0, 4, 1, 0, UnitBytes({1.5F}) + std::string("\x02\xfe\x02\xfe", 4)));
  EXPECT_EQ(encode({.codec = Codec::kRms4, .step = 1}),
            MakeBlock(0, 5, 1, 0, UnitBytes({3, 3}) + std::string("\x99\x77", 2)));
  EXPECT_EQ(
      encode({.codec = Codec::kTernary, .step = 1}),  // digits 2, 0, 2, 0 and 1 for the missing one, whose unit is 0
      MakeBlock(0, 6, 1, 0, UnitBytes({3, 3, 3, 3, 0}) + std::string("\x65", 1)));
}

// A block written by hand with plain zstd decodes.
TEST(DeltaCodecQuantizedTest, ZstdBlockFromASecondWriter) {
  const std::string symbols(500, '\x9A');  // value 2 in the low nibbles, 1 in the high ones
  const std::string block = MakeBlock(0, 5, 0, 0, UnitBytes({0.25F, 3}) + Compress(symbols));
  std::vector<float> want(1000, 0.5F);
  std::fill(want.begin() + 500, want.end(), 3.0F);
  EXPECT_EQ(DecodeAll(block, 1000, Codec::kRms4), want);
}

// The scales that stand before the symbols of a payload of one block.
std::vector<float> UnitsOf(const std::string& payload, std::size_t count) {
  std::vector<float> units(count);
  std::memcpy(units.data(), payload.data() + 20, count * sizeof(float));
  return units;
}

// Values whose size changes from range to range: each has its own scale, in the order of the format.
TEST(DeltaCodecQuantizedTest, EveryRangeHasItsScale) {
  std::vector<float> values(kBlockValues);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::ldexp(i % 2 == 0 ? 1.0F : -1.0F, static_cast<int>(i / 4096));  // 1, 2, 4 ... 32768
  }
  std::vector<float> want(16);
  for (std::size_t i = 0; i < 16; ++i) want[i] = std::ldexp(0.5F, static_cast<int>(i));
  for (const Codec codec : {Codec::kRms8, Codec::kRms4}) {
    CodingReport report;
    const std::string payload = EncodeVector(values, Coding{.codec = codec, .step = 0.5}, &report).value();
    EXPECT_EQ(UnitsOf(payload, 16), want);
    EXPECT_EQ(DecodeAll(payload, values.size(), codec), values);
    EXPECT_EQ(report.squared_error, 0);
  }
  // Ternary: planes of 13,108 positions, so the second unit of the second plane is that of the values from 17,204 on.
  std::vector<float> one_range(kBlockValues);
  std::fill_n(one_range.begin() + 13108 + 4096, 4096, -3.0F);
  const std::string payload = EncodeVector(one_range, Coding{.codec = Codec::kTernary, .step = 1}, nullptr).value();
  std::vector<float> want_ternary(20);
  want_ternary[5] = 3;
  EXPECT_EQ(UnitsOf(payload, 20), want_ternary);
  EXPECT_EQ(DecodeAll(payload, kBlockValues, Codec::kTernary), one_range);
}

// What is a thousand times smaller than the rest of its block is not rounded away, nor is its error lost in the report.
TEST(DeltaCodecQuantizedTest, SmallValuesBesideLargeOnesKeepTheirPrecision) {
  std::vector<float> values = Gaussian(kBlockValues, 12);
  for (std::size_t i = 8192; i < 12288; ++i) values[i] *= 1e-3F;
  for (const Coding& coding : QuantizedCodings()) {
    if (coding.codec == Codec::kTernary) continue;  // its ranges begin elsewhere
    const std::vector<float> decoded =
        DecodeAll(EncodeVector(values, coding, nullptr).value(), values.size(), coding.codec);
    double signal = 0;
    double error = 0;
    for (std::size_t i = 8192; i < 12288; ++i) {
      signal += static_cast<double>(values[i]) * values[i];
      error += std::pow(static_cast<double>(values[i]) - decoded[i], 2);
    }
    EXPECT_GT(10 * std::log10(signal / error), 7) << static_cast<int>(coding.codec);
  }
}

TEST(DeltaCodecQuantizedTest, SameInputSameBytesAndUsedContextsDoNotMatter) {
  const std::vector<float> values = Gaussian(70000, 2);
  for (const Coding& coding : QuantizedCodings()) {
    const std::string payload = EncodeVector(values, coding, nullptr).value();
    BlockEncoder encoder(coding);
    std::string scratch;
    ASSERT_TRUE(encoder.Encode(5, std::span(values).subspan(100, 1000), &scratch).ok());
    std::string again;
    ASSERT_TRUE(encoder.Encode(0, std::span(values).first(kBlockValues), &again).ok());
    ASSERT_TRUE(encoder.Encode(1, std::span(values).subspan(kBlockValues), &again).ok());
    EXPECT_EQ(again, payload);
  }
}

TEST(DeltaCodecQuantizedTest, ReportsSizeAndError) {
  const std::vector<float> values = Gaussian(kBlockValues, 3);
  for (const Coding& coding : QuantizedCodings()) {
    CodingReport report;
    const std::string payload = EncodeVector(values, coding, &report).value();
    const std::vector<float> decoded = DecodeAll(payload, values.size(), coding.codec);
    double signal = 0;
    double error = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      signal += static_cast<double>(values[i]) * values[i];
      error += std::pow(static_cast<double>(values[i]) - decoded[i], 2);
    }
    EXPECT_EQ(report.values, kBlockValues);
    EXPECT_EQ(report.bytes, payload.size());
    EXPECT_NEAR(report.squared_signal / signal, 1, 1e-12);
    EXPECT_NEAR(report.squared_error / error, 1, 1e-4) << static_cast<int>(coding.codec);
  }
}

// What the format promises on Gaussian values, all overheads counted.
TEST(DeltaCodecQuantizedTest, BitsAndNoiseOnGaussianValues) {
  const struct {
    double step, bits_max, snr_db_min;
  } promises[] = {{0.5, 3.15, 16.5}, {1.0, 2.2, 10.5}, {1.5, 1.65, 7.2}, {2.5, 1.0, 3.0}};
  const std::vector<float> values = Gaussian(4 * kBlockValues, 11);
  for (const auto& promise : promises) {
    CodingReport report;
    const Coding coding = {.codec = QuantizedCodec(promise.step), .step = promise.step};
    ASSERT_TRUE(EncodeVector(values, coding, &report).ok());
    EXPECT_LE(report.bits_per_value(), promise.bits_max) << promise.step;
    EXPECT_GE(report.snr_db(), promise.snr_db_min) << promise.step;
  }
}

TEST(DeltaCodecQuantizedTest, ResidualAndDecodedComeOutOfTheSamePass) {
  const std::vector<float> values = Gaussian(5000, 4);
  const std::vector<float> residual = Gaussian(5000, 5);
  std::vector<Coding> codings = QuantizedCodings();
  codings.push_back({.codec = Codec::kFp32});
  codings.push_back({.codec = Codec::kBf16});
  for (const Coding& coding : codings) {
    BlockEncoder encoder(coding);
    std::string payload;
    std::vector<float> next(5000);
    const CodingReport report = encoder.EncodeWithResidual(0, values, residual, next, &payload).value();
    EXPECT_EQ(report.bytes, payload.size());
    const std::vector<float> decoded = DecodeAll(payload, 5000, coding.codec);
    std::vector<float> sent(5000);
    for (std::size_t i = 0; i < 5000; ++i) {
      sent[i] = values[i] + residual[i];
      ASSERT_EQ(next[i], sent[i] - decoded[i]) << i;
    }
    // In place, and as values alone: the same bytes.
    std::vector<float> in_place = residual;
    std::string again;
    ASSERT_TRUE(encoder.EncodeWithResidual(0, values, in_place, in_place, &again).ok());
    EXPECT_EQ(in_place, next);
    EXPECT_EQ(again, payload);
    std::vector<float> view = residual;
    std::string broadcast;
    ASSERT_TRUE(encoder.EncodeAndAdd(0, sent, view, &broadcast).ok());
    EXPECT_EQ(broadcast, payload);
    for (std::size_t i = 0; i < 5000; ++i) ASSERT_EQ(view[i], residual[i] + decoded[i]) << i;
  }
}

TEST(DeltaCodecQuantizedTest, DecodesIntoAWeightedSum) {
  const std::vector<float> values = Gaussian(3001, 6);
  for (const Coding& coding : QuantizedCodings()) {
    const std::string payload = EncodeVector(values, coding, nullptr).value();
    const std::vector<float> decoded = DecodeAll(payload, 3001, coding.codec);
    std::vector<float> sum = Gaussian(3001, 7);
    std::vector<float> want = sum;
    for (std::size_t i = 0; i < want.size(); ++i) {
      const float product = 0.3F * decoded[i];
      want[i] = want[i] + product;
    }
    BlockDecoder decoder;
    double squared_norm = 0;
    ASSERT_TRUE(decoder.DecodeAdd(Bytes(payload), coding.codec, 0, 0.3F, sum, &squared_norm).ok());
    EXPECT_EQ(sum, want);
    double squares = 0;
    for (const float value : decoded) squares += static_cast<double>(value) * value;
    EXPECT_NEAR(squared_norm, squares, 1e-6 * squares);
    double of_decode = 0;
    ASSERT_TRUE(decoder.Decode(Bytes(payload), coding.codec, 0, sum, &of_decode).ok());
    EXPECT_EQ(of_decode, squared_norm);
    double of_check = 0;
    ASSERT_TRUE(decoder.Check(Bytes(payload), coding.codec, 0, sum.size(), &of_check).ok());
    EXPECT_EQ(of_check, squared_norm);
  }
}

// With error feedback nothing is lost for good: what was decoded over time plus what still waits is what was given.
TEST(DeltaCodecQuantizedTest, ClippedOutliersArriveInTime) {
  std::vector<float> values(1000, 1e-3F);
  values[17] = 1e6F;
  for (const Coding& coding : QuantizedCodings()) {
    BlockEncoder encoder(coding);
    BlockDecoder decoder;
    std::vector<float> residual = values;
    std::vector<float> received(1000);
    const std::vector<float> nothing(1000);
    for (int round = 0; round < 120; ++round) {
      std::string payload;
      ASSERT_TRUE(encoder.EncodeWithResidual(0, nothing, residual, residual, &payload).ok());
      ASSERT_TRUE(decoder.DecodeAdd(Bytes(payload), coding.codec, 0, 1, received).ok());
    }
    EXPECT_NEAR(received[17] / values[17], 1, 1e-3) << static_cast<int>(coding.codec);
  }
}

TEST(DeltaCodecQuantizedTest, BlocksAtTheEdges) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const float huge = std::numeric_limits<float>::max();
  for (const Coding& coding : QuantizedCodings()) {
    for (const std::vector<float>& values :
         {std::vector<float>(1000, 0.0F), std::vector<float>(1000, -0.0F), std::vector<float>(1000, tiny),
          std::vector<float>{1e-39F, -1e-39F}}) {  // nothing that a unit could express: all of it stays behind
      CodingReport report;
      const std::string payload = EncodeVector(values, coding, &report).value();
      EXPECT_EQ(DecodeAll(payload, values.size(), coding.codec), std::vector<float>(values.size()));
      EXPECT_EQ(report.squared_error, report.squared_signal);
      BlockEncoder encoder(coding);
      std::vector<float> next = values;
      std::string again;
      ASSERT_TRUE(encoder.EncodeWithResidual(0, std::vector<float>(values.size()), next, next, &again).ok());
      EXPECT_EQ(next, values);
    }
    EXPECT_EQ(EncodeVector(std::vector<float>(), coding, nullptr).value(), "");
    const std::vector<float> one =
        DecodeAll(EncodeVector(std::vector<float>{0.7F}, coding, nullptr).value(), 1, coding.codec);
    EXPECT_NEAR(one[0], 0.7F, 0.7F * coding.step / 2 + 1e-6F);
    // As large as fp32 gets: finite on the other side.
    for (const float value :
         DecodeAll(EncodeVector(std::vector<float>(9, huge), coding, nullptr).value(), 9, coding.codec)) {
      EXPECT_TRUE(std::isfinite(value) && value > 0);
    }
  }
}

TEST(DeltaCodecQuantizedTest, WhatIsNotFiniteIsRefusedByItsIndex) {
  std::vector<Coding> codings = QuantizedCodings();
  codings.push_back({.codec = Codec::kFp32});
  codings.push_back({.codec = Codec::kBf16});
  for (const Coding& coding : codings) {
    for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> values = Gaussian(100, 8);
      values[42] = bad;
      BlockEncoder encoder(coding);
      std::string payload = "before";
      std::vector<float> residual = Gaussian(100, 9);
      const std::vector<float> untouched = residual;
      const absl::Status status = encoder.EncodeWithResidual(3, values, residual, residual, &payload).status();
      EXPECT_EQ(status, absl::InvalidArgumentError("block 3: value 196650 of the vector is not finite"));
      EXPECT_EQ(residual, untouched);
      EXPECT_EQ(encoder.EncodeAndAdd(3, values, residual, &payload).status(), status);
      EXPECT_EQ(encoder.Encode(3, values, &payload).ok(), !IsQuantized(coding.codec));
      EXPECT_EQ(payload.starts_with("before"), true);
      EXPECT_EQ(payload.size() == 6, IsQuantized(coding.codec));
    }
  }
  // Finite addends whose sum is not, and what bf16 rounds to infinity.
  const std::vector<float> huge(4, std::numeric_limits<float>::max());
  std::vector<float> next(4);
  std::string payload;
  BlockEncoder rms({.codec = Codec::kRms4});
  EXPECT_FALSE(rms.EncodeWithResidual(0, huge, huge, next, &payload).ok());
  BlockEncoder bf16({.codec = Codec::kBf16});
  EXPECT_FALSE(bf16.EncodeWithResidual(0, huge, std::vector<float>(4), next, &payload).ok());
  EXPECT_EQ(payload, "");
}

TEST(DeltaCodecQuantizedTest, LevelsAreChoices) {
  const std::vector<float> values = Gaussian(kBlockValues, 10);
  for (const int level : {1, 3, 19}) {
    const Coding coding = {.codec = Codec::kRms4, .zstd_level = level};
    const std::string payload = EncodeVector(values, coding, nullptr).value();
    EXPECT_LT(payload.size(), 2 * kBlockValues / 8) << level;
    EXPECT_EQ(
        DecodeAll(payload, kBlockValues, Codec::kRms4),
        DecodeAll(EncodeVector(values, Coding{.codec = Codec::kRms4}, nullptr).value(), kBlockValues, Codec::kRms4));
  }
}

}  // namespace
}  // namespace autoloco
