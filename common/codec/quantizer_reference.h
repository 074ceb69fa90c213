// The quantizer's loops in plain C++: the definition that every vectorized kernel equals bit for bit, and the tails of
// those kernels.
#ifndef AUTOLOCO_COMMON_CODEC_QUANTIZER_REFERENCE_H_
#define AUTOLOCO_COMMON_CODEC_QUANTIZER_REFERENCE_H_

#include <algorithm>
#include <array>
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

// A range of positions, the same in all planes.
struct PositionRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};
template <Packing kPacking>
PositionRange PositionsOfRange(std::size_t count, std::size_t range) {
  const std::size_t begin = range * kRangePositions;
  return {begin, std::min(begin + kRangePositions, PackedBytes(kPacking, count))};
}

// The units of range `range` in all planes.
template <Packing kPacking>
struct RangeUnits {
  RangeUnits(const float* units, std::size_t count, std::size_t range) {
    const std::size_t ranges = RangesPerPlane(kPacking, count);
    for (std::size_t plane = 0; plane < of_plane.size(); ++plane) of_plane[plane] = units[plane * ranges + range];
  }
  float operator[](std::size_t plane) const { return of_plane[plane]; }

  std::array<float, SymbolsPerByte(kPacking)> of_plane;
};

// sum * unit^2, as both kinds of statistics are scaled.
inline double TimesSquare(double sum, float unit) { return sum * (static_cast<double>(unit) * unit); }

// For each plane, kSumLanes sums of (x - q)^2, position j in sum j mod 16.
template <Packing kPacking>
using ErrorLanes = std::array<std::array<float, kSumLanes>, SymbolsPerByte(kPacking)>;

template <Packing kPacking>
double SquaredError(const ErrorLanes<kPacking>& lanes, const RangeUnits<kPacking>& units) {
  double sum = 0;
  for (std::size_t plane = 0; plane < lanes.size(); ++plane) {
    sum += TimesSquare(SumInOrder(lanes[plane].data()), units[plane]);
  }
  return sum;
}

// Packs the bytes begin .. end - 1, all of one range.
template <Packing kPacking>
void QuantizePositions(const QuantizeBlock& block, const RangeUnits<kPacking>& units, std::size_t begin,
                       std::size_t end, ErrorLanes<kPacking>* lanes) {
  constexpr std::size_t kPlanes = SymbolsPerByte(kPacking);
  constexpr auto kLimit = static_cast<float>(SymbolMax(kPacking));
  const std::size_t stride = PackedBytes(kPacking, block.count);
  for (std::size_t j = begin; j < end; ++j) {
    std::uint32_t byte = 0;
    for (std::size_t plane = kPlanes; plane-- > 0;) {
      byte *= PackedRadix(kPacking);
      const std::size_t i = plane * stride + j;
      if (i >= block.count) continue;
      const float v = block.residual_in == nullptr ? block.values[i] : block.values[i] + block.residual_in[i];
      const float x = v * Reciprocal(units[plane]);
      const float rounded = (x < -kLimit ? -kLimit : x > kLimit ? kLimit : x) + kRoundingMagic;
      const float q = rounded - kRoundingMagic;
      const float error = x - q;
      (*lanes)[plane][j % kSumLanes] += error * error;
      const float decoded = q * units[plane];
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

// For each plane, the sum of q^2. Integers: any order gives the same. At most 2^14 for each of 2^12 symbols: fits.
template <Packing kPacking>
using SquaredSymbols = std::array<std::uint32_t, SymbolsPerByte(kPacking)>;

// Adds those of the bytes begin .. end - 1, all of one range.
template <Packing kPacking>
void AddSquaredSymbols(const std::uint8_t* packed, std::size_t count, std::size_t begin, std::size_t end,
                       SquaredSymbols<kPacking>* sums) {
  const std::size_t stride = PackedBytes(kPacking, count);
  for (std::size_t plane = 0; plane < sums->size() && plane * stride + begin < count; ++plane) {
    const std::size_t plane_end = std::min(end, count - plane * stride);
    std::uint32_t sum = 0;
    for (std::size_t j = begin; j < plane_end; ++j) {
      const int q = SymbolAt<kPacking>(packed[j], plane);
      sum += static_cast<std::uint32_t>(q * q);
    }
    (*sums)[plane] += sum;
  }
}

template <Packing kPacking>
double SquaredNormOf(const SquaredSymbols<kPacking>& sums, const RangeUnits<kPacking>& units) {
  double norm = 0;
  for (std::size_t plane = 0; plane < sums.size(); ++plane) norm += TimesSquare(sums[plane], units[plane]);
  return norm;
}

// Unpacks the bytes begin .. end - 1, all of one range. kAdd: out += weight * value; otherwise out = weight * value.
template <Packing kPacking, bool kAdd>
void DequantizePositions(const WeightedSymbols& block, const RangeUnits<kPacking>& units, std::size_t count, float* out,
                         std::size_t begin, std::size_t end) {
  const std::size_t stride = PackedBytes(kPacking, count);
  for (std::size_t j = begin; j < end; ++j) {
    for (std::size_t plane = 0; plane < SymbolsPerByte(kPacking); ++plane) {
      const std::size_t i = plane * stride + j;
      if (i >= count) break;
      const float value = static_cast<float>(SymbolAt<kPacking>(block.packed[j], plane)) * units[plane];
      out[i] = kAdd ? out[i] + block.weight * value : block.weight * value;
    }
  }
}

const QuantizerKernels& ReferenceQuantizerKernels();

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CODEC_QUANTIZER_REFERENCE_H_
