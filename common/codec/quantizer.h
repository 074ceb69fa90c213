// The uniform quantizer: values to symbols to packed bytes and back, for one block. README.md has the formulas.
//
// Symbol q stands for q * u, where u is the unit (fp32) of the value's range. With v = value + residual, all in fp32,
// every operation rounded to nearest even, none fused:
//
//   x = v * (1 / u)      q = round-half-even(min(max(x, -Q), Q))      decoded = q * u      residual' = v - decoded
//
// Symbols are packed in planes: with P symbols a byte and S = ceil(n / P), byte j holds the symbols of the values j,
// j + S, j + 2 S ... , so that whole vectors of values meet in whole vectors of bytes. Each plane is cut into ranges of
// 4,096 positions j, and each range has a unit of its own: what is small beside other values of its block is not
// rounded away with their scale. The ranges of plane 0 come first, then those of plane 1 ...
//
// The same loops exist twice: plain (quantizer_reference.h, kept for ever) and vectorized for every instruction set
// (quantizer_kernels.cc), equal bit for bit. The table below is what both fill.
#ifndef AUTOLOCO_COMMON_CODEC_QUANTIZER_H_
#define AUTOLOCO_COMMON_CODEC_QUANTIZER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace autoloco {

enum class Packing : std::uint8_t { kByte = 0, kNibble = 1, kTernary = 2 };
inline constexpr std::size_t kPackings = 3;

// P: symbols in a byte.
constexpr std::size_t SymbolsPerByte(Packing packing) {
  return packing == Packing::kByte ? 1 : packing == Packing::kNibble ? 2 : 5;
}
// Q: the largest symbol a writer makes.
constexpr int SymbolMax(Packing packing) {
  return packing == Packing::kByte ? 127 : packing == Packing::kNibble ? 7 : 1;
}
constexpr std::size_t PackedBytes(Packing packing, std::size_t count) {
  return (count + SymbolsPerByte(packing) - 1) / SymbolsPerByte(packing);
}

inline constexpr std::size_t kRangePositions = 4096;  // part of the wire format
// Ranges in one plane.
constexpr std::size_t RangesPerPlane(Packing packing, std::size_t count) {
  return (PackedBytes(packing, count) + kRangePositions - 1) / kRangePositions;
}
// Ranges, and so units, in a block.
constexpr std::size_t UnitCount(Packing packing, std::size_t count) {
  return SymbolsPerByte(packing) * RangesPerPlane(packing, count);
}
// The values of a range: neighbours. None where the last planes of a short block end before it.
struct ValueRange {
  std::size_t begin = 0;
  std::size_t size = 0;
};
// REQUIRES: index < UnitCount(packing, count).
ValueRange ValuesOfUnit(Packing packing, std::size_t count, std::size_t index);

// A unit is +0 or in [kUnitMin, kUnitMax]: its reciprocal and 128 times it are finite and normal.
inline constexpr float kUnitMin = 0x1p-126F;
inline constexpr float kUnitMax = 0x1p120F;
bool IsUnit(float unit);

// step * sqrt(sum_of_squares / count), computed in fp64 and rounded to fp32; below kUnitMin it is 0, above kUnitMax
// kUnitMax. REQUIRES: the sum is finite, count > 0.
float RmsUnit(double sum_of_squares, std::size_t count, double step);
// max_abs / 127, the same way.
float MaxAbsUnit(float max_abs);

// Whether every byte of a ternary packing stands for five symbols: none is above 242.
bool IsTernary(const std::uint8_t* packed, std::size_t bytes);

// One call of a quantizing kernel. Arrays hold `count` values, `packed` PackedBytes(count). Nothing overlaps, but
// residual_out may be residual_in itself.
struct QuantizeBlock {
  const float* values = nullptr;
  const float* residual_in = nullptr;  // null: none
  float* residual_out = nullptr;       // null: not wanted
  float* view = nullptr;               // null: not wanted; what is decoded is added to it
  std::size_t count = 0;
  const float* units = nullptr;  // UnitCount; 0: all symbols of that range are zero
  std::uint8_t* packed = nullptr;
};

// What one packed block adds to a sum: weight * (q u) for each of its values.
struct WeightedSymbols {
  const std::uint8_t* packed = nullptr;
  const float* units = nullptr;
  float weight = 1;
};

// The combinations of inputs and outputs that kernels exist for.
enum class Feedback : std::uint8_t {
  kNone = 0,      // values -> packed
  kResidual = 1,  // values, residual_in -> packed, residual_out
  kAdded = 2,     // values -> packed, view + decoded
};
inline constexpr std::size_t kFeedbacks = 3;

// The kernels of one instruction set. Immutable.
struct QuantizerKernels {
  // Sum of v^2 in fp64, in 16 partial sums (value i in sum i mod 16) that are added up in order. `residual` may be
  // null. Not finite exactly where a v is not.
  using SumOfSquares = double (*)(const float* values, const float* residual, std::size_t count);
  // Largest |v|; anything where a v is NaN.
  using MaxAbs = float (*)(const float* values, const float* residual, std::size_t count);
  // Packs a block whose v are finite. Returns the squared error but for ranges whose unit is 0: u^2 times the range's
  // sum of (x - q)^2, added up in fp64, range by range and plane by plane in each.
  using Quantize = double (*)(const QuantizeBlock& block);
  // Sum of (q u)^2 over the block: u^2 times the range's sum of q^2, added up in the same order.
  using SquaredNorm = double (*)(const std::uint8_t* packed, const float* units, std::size_t count);
  // sum[i] = w0 (q0 u0) + w1 (q1 u1) + ... over the blocks, of `count` values each, in this order, each operation
  // rounded; with `add` the old sum[i] comes first. REQUIRES: a block.
  using Dequantize = void (*)(std::span<const WeightedSymbols> blocks, bool add, std::size_t count, float* sum);

  const char* name = "";
  SumOfSquares sum_of_squares = nullptr;
  MaxAbs max_abs = nullptr;
  std::array<std::array<Quantize, kFeedbacks>, kPackings> quantize = {};
  std::array<SquaredNorm, kPackings> squared_norm = {};
  std::array<Dequantize, kPackings> dequantize = {};
};

// Those for this machine's processor. Thread-safe; the choice is made once.
const QuantizerKernels& BestQuantizerKernels();
// All that were compiled and that this machine can run, the plain ones among them.
std::vector<const QuantizerKernels*> AllQuantizerKernels();

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CODEC_QUANTIZER_H_
