#include "common/codec/quantizer.h"

#include <algorithm>
#include <cmath>

namespace autoloco {
namespace {

float ToUnit(double unit) {
  if (unit < kUnitMin) return 0;
  return static_cast<float>(std::min(unit, static_cast<double>(kUnitMax)));
}

}  // namespace

ValueRange ValuesOfUnit(Packing packing, std::size_t count, std::size_t index) {
  const std::size_t stride = PackedBytes(packing, count);
  const std::size_t ranges = RangesPerPlane(packing, count);
  const std::size_t position = index % ranges * kRangePositions;
  const std::size_t begin = index / ranges * stride + position;
  const std::size_t end = std::min(begin + std::min(kRangePositions, stride - position), count);
  return {begin, end > begin ? end - begin : 0};
}

bool IsUnit(float unit) {
  if (unit == 0) return !std::signbit(unit);
  return unit >= kUnitMin && unit <= kUnitMax;
}

float RmsUnit(double sum_of_squares, std::size_t count, double step) {
  return ToUnit(step * std::sqrt(sum_of_squares / static_cast<double>(count)));
}

float MaxAbsUnit(float max_abs) {
  constexpr double kSymbols = 127;
  return ToUnit(static_cast<double>(max_abs) / kSymbols);
}

bool IsTernary(const std::uint8_t* packed, std::size_t bytes) {
  constexpr std::uint8_t kByteMax = 242;  // 3^5 - 1
  std::uint8_t largest = 0;
  for (std::size_t j = 0; j < bytes; ++j) largest = std::max(largest, packed[j]);
  return largest <= kByteMax;
}

}  // namespace autoloco
