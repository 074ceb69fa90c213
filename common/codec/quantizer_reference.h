// The quantizer's loops in plain C++: the definition that every vectorized kernel equals bit for bit, and the tails of
// those kernels.
#ifndef AUTOLOCO_COMMON_CODEC_QUANTIZER_REFERENCE_H_
#define AUTOLOCO_COMMON_CODEC_QUANTIZER_REFERENCE_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "common/codec/quantizer.h"

namespace autoloco {

// Partial sums, part of the definition: their number fixes the order of additions on every instruction set.
inline constexpr std::size_t kSumLanes = 16;

// Adding this to |x| < 2^22 rounds x to an integer, ties to even, that stands in the low bits; subtracting it again
// gives the integer as a float. The same two operations on every instruction set.
inline constexpr float kRoundingMagic = 0x1.8p23F;

// What is added to a packed byte so that its symbols are not negative: 8 and 8 in nibbles, 1 in each ternary digit.
constexpr std::uint8_t PackedOffset(Packing packing) {
  return packing == Packing::kByte ? 0 : packing == Packing::kNibble ? 0x88 : 121;
}
// A symbol's weight in its byte, relative to the one of the plane before.
constexpr std::uint32_t PackedRadix(Packing packing) { return packing == Packing::kNibble ? 16 : 3; }

inline void AddSquares(const float* values, const float* residual, std::size_t begin, std::size_t end, double* lanes) {
  for (std::size_t i = begin; i < end; ++i) {
    const double v = residual == nullptr ? values[i] : values[i] + residual[i];
    lanes[i % kSumLanes] += v * v;
  }
}

template <typename T>
double SumInOrder(const T* lanes) {
  double sum = 0;
  for (std::size_t lane = 0; lane < kSumLanes; ++lane) sum += static_cast<double>(lanes[lane]);
  return sum;
}

inline float MaxAbsFrom(float largest, const float* values, const float* residual, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    const float v = residual == nullptr ? values[i] : values[i] + residual[i];
    const float magnitude = v < 0 ? -v : v;
    if (magnitude > largest) largest = magnitude;
  }
  return largest;
}

inline float Reciprocal(float unit) { return unit == 0 ? 0.0F : 1.0F / unit; }

// Packs the bytes begin .. end - 1. `lanes`: kSumLanes sums of (x - q)^2, position j in sum j mod 16, the last plane
// first.
template <Packing kPacking>
void QuantizePositions(const QuantizeBlock& block, std::size_t begin, std::size_t end, float* lanes) {
  constexpr std::size_t kPlanes = SymbolsPerByte(kPacking);
  constexpr auto kLimit = static_cast<float>(SymbolMax(kPacking));
  const std::size_t stride = PackedBytes(kPacking, block.count);
  const float inverse = Reciprocal(block.unit);
  for (std::size_t j = begin; j < end; ++j) {
    std::uint32_t byte = 0;
    for (std::size_t plane = kPlanes; plane-- > 0;) {
      byte *= PackedRadix(kPacking);
      const std::size_t i = plane * stride + j;
      if (i >= block.count) continue;
      const float v = block.residual_in == nullptr ? block.values[i] : block.values[i] + block.residual_in[i];
      const float x = v * inverse;
      const float rounded = (x < -kLimit ? -kLimit : x > kLimit ? kLimit : x) + kRoundingMagic;
      const float q = rounded - kRoundingMagic;
      const float error = x - q;
      lanes[j % kSumLanes] += error * error;
      const float decoded = q * block.unit;
      if (block.residual_out != nullptr) block.residual_out[i] = v - decoded;
      if (block.view != nullptr) block.view[i] = block.view[i] + decoded;
      byte += std::bit_cast<std::uint32_t>(rounded);
    }
    block.packed[j] = static_cast<std::uint8_t>(byte + PackedOffset(kPacking));
  }
}

// Symbol of plane `plane` in a byte.
template <Packing kPacking>
int SymbolAt(std::uint8_t byte, std::size_t plane) {
  if constexpr (kPacking == Packing::kByte) {
    return static_cast<std::int8_t>(byte);
  } else if constexpr (kPacking == Packing::kNibble) {
    return static_cast<int>(plane == 0 ? byte & 15U : byte >> 4U) - 8;
  } else {
    int digit = byte;
    for (std::size_t k = 0; k < plane; ++k) digit /= 3;
    return digit % 3 - 1;
  }
}

// Sum of q^2 of all symbols in a byte. Integers: any order gives the same.
template <Packing kPacking>
std::uint32_t SquaredSymbolsOf(std::uint8_t byte) {
  std::uint32_t sum = 0;
  for (std::size_t plane = 0; plane < SymbolsPerByte(kPacking); ++plane) {
    const int q = SymbolAt<kPacking>(byte, plane);
    sum += static_cast<std::uint32_t>(q * q);
  }
  return sum;
}

// Of the bytes from `begin` on. At most 2^14 for each of at most 2^16 symbols: fits.
template <Packing kPacking>
std::uint64_t SumSquaredSymbols(const std::uint8_t* packed, std::size_t count, std::size_t begin) {
  const std::size_t stride = PackedBytes(kPacking, count);
  std::uint32_t sum = 0;
  for (std::size_t j = begin; j < stride; ++j) sum += SquaredSymbolsOf<kPacking>(packed[j]);
  // What stands for no value does not count; it stands behind `begin`.
  for (std::size_t plane = 0; plane < SymbolsPerByte(kPacking); ++plane) {
    const std::size_t first = plane * stride;
    for (std::size_t j = count > first ? count - first : 0; j < stride; ++j) {
      const int q = SymbolAt<kPacking>(packed[j], plane);
      sum -= static_cast<std::uint32_t>(q * q);
    }
  }
  return sum;
}

// Unpacks the bytes begin .. end - 1. kAdd: out += weight * value; otherwise out = value.
template <Packing kPacking, bool kAdd>
void DequantizePositions(const std::uint8_t* packed, float unit, std::size_t count, float weight, float* out,
                         std::size_t begin, std::size_t end) {
  const std::size_t stride = PackedBytes(kPacking, count);
  for (std::size_t j = begin; j < end; ++j) {
    for (std::size_t plane = 0; plane < SymbolsPerByte(kPacking); ++plane) {
      const std::size_t i = plane * stride + j;
      if (i >= count) break;
      const float value = static_cast<float>(SymbolAt<kPacking>(packed[j], plane)) * unit;
      out[i] = kAdd ? out[i] + weight * value : value;
    }
  }
}

const QuantizerKernels& ReferenceQuantizerKernels();

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CODEC_QUANTIZER_REFERENCE_H_
