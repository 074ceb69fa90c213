#include "common/codec/byte_planes.h"

#include <bit>

namespace autoloco {
namespace {

float Fp32At(const std::uint8_t* planes, std::size_t n, std::size_t i) {
  const std::uint32_t bits = planes[i] | static_cast<std::uint32_t>(planes[n + i]) << 8 |
                             static_cast<std::uint32_t>(planes[2 * n + i]) << 16 |
                             static_cast<std::uint32_t>(planes[3 * n + i]) << 24;
  return std::bit_cast<float>(bits);
}

float Bf16At(const std::uint8_t* planes, std::size_t n, std::size_t i) {
  const std::uint32_t bits = planes[i] | static_cast<std::uint32_t>(planes[n + i]) << 8;
  return std::bit_cast<float>(bits << 16);
}

// Has no linkage, so that the loops below can hold it and vectorize.
std::uint16_t RoundedBf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded);
}

// Of value_at(0) .. value_at(count - 1), as SquaredPlanes. A whole row of partial sums at a time, so that the loop
// vectorizes.
template <typename ValueAt>
double SumOfSquares(std::size_t count, ValueAt value_at) {
  constexpr std::size_t kSums = 16;
  double sums[kSums] = {};
  const std::size_t rest = count % kSums;
  for (std::size_t row = 0; row < count - rest; row += kSums) {
    for (std::size_t i = 0; i < kSums; ++i) {
      const double value = value_at(row + i);
      sums[i] += value * value;
    }
  }
  for (std::size_t i = 0; i < rest; ++i) {
    const double value = value_at(count - rest + i);
    sums[i] += value * value;
  }
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

float Bf16AsFloat(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

}  // namespace

std::uint16_t ToBf16(float value) { return RoundedBf16(value); }

float Decoded(float value, Codec codec) {
  if (codec == Codec::kFp32) return value;
  return Bf16AsFloat(RoundedBf16(value));
}

void DecodedNegated(std::span<const float> values, Codec codec, std::span<float> out) {
  const float* const __restrict from = values.data();
  float* const __restrict to = out.data();
  const std::size_t n = values.size();
  if (codec == Codec::kFp32) {
    for (std::size_t i = 0; i < n; ++i) to[i] = -from[i];
  } else {
    for (std::size_t i = 0; i < n; ++i) to[i] = -Bf16AsFloat(RoundedBf16(from[i]));
  }
}

void SplitPlanes(std::span<const float> values, Codec codec, std::uint8_t* planes) {
  const float* const __restrict from = values.data();
  const std::size_t n = values.size();
  std::uint8_t* const __restrict plane0 = planes;
  std::uint8_t* const __restrict plane1 = planes + n;
  if (codec == Codec::kFp32) {
    std::uint8_t* const __restrict plane2 = planes + 2 * n;
    std::uint8_t* const __restrict plane3 = planes + 3 * n;
    for (std::size_t i = 0; i < n; ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(from[i]);
      plane0[i] = static_cast<std::uint8_t>(bits);
      plane1[i] = static_cast<std::uint8_t>(bits >> 8);
      plane2[i] = static_cast<std::uint8_t>(bits >> 16);
      plane3[i] = static_cast<std::uint8_t>(bits >> 24);
    }
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint16_t bits = RoundedBf16(from[i]);
    plane0[i] = static_cast<std::uint8_t>(bits);
    plane1[i] = static_cast<std::uint8_t>(bits >> 8);
  }
}

void JoinPlanes(const std::uint8_t* planes, Codec codec, std::span<float> values) {
  const std::size_t n = values.size();
  if (codec == Codec::kFp32) {
    for (std::size_t i = 0; i < n; ++i) values[i] = Fp32At(planes, n, i);
  } else {
    for (std::size_t i = 0; i < n; ++i) values[i] = Bf16At(planes, n, i);
  }
}

double SquaredPlanes(const std::uint8_t* planes, Codec codec, std::size_t count) {
  if (codec == Codec::kFp32) return SumOfSquares(count, [=](std::size_t i) { return Fp32At(planes, count, i); });
  return SumOfSquares(count, [=](std::size_t i) { return Bf16At(planes, count, i); });
}

void AddPlanes(const std::uint8_t* planes, Codec codec, float weight, std::span<float> sum) {
  const std::size_t n = sum.size();
  if (codec == Codec::kFp32) {
    for (std::size_t i = 0; i < n; ++i) sum[i] = sum[i] + weight * Fp32At(planes, n, i);
  } else {
    for (std::size_t i = 0; i < n; ++i) sum[i] = sum[i] + weight * Bf16At(planes, n, i);
  }
}

}  // namespace autoloco
