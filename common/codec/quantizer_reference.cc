#include "common/codec/quantizer_reference.h"

namespace autoloco {
namespace {

double SumOfSquares(const float* values, const float* residual, std::size_t count) {
  double lanes[kSumLanes] = {};
  AddSquares(values, residual, 0, count, lanes);
  return SumInOrder(lanes);
}

float MaxAbs(const float* values, const float* residual, std::size_t count) {
  return MaxAbsFrom(0, values, residual, 0, count);
}

template <Packing kPacking>
double Quantize(const QuantizeBlock& block) {
  double error = 0;
  for (std::size_t range = 0; range < RangesPerPlane(kPacking, block.count); ++range) {
    const RangeUnits<kPacking> units(block.units, block.count, range);
    const PositionRange positions = PositionsOfRange<kPacking>(block.count, range);
    ErrorLanes<kPacking> lanes = {};
    QuantizePositions<kPacking>(block, units, positions.begin, positions.end, &lanes);
    error += SquaredError<kPacking>(lanes, units);
  }
  return error;
}

template <Packing kPacking>
double SquaredNorm(const std::uint8_t* packed, const float* units, std::size_t count) {
  double norm = 0;
  for (std::size_t range = 0; range < RangesPerPlane(kPacking, count); ++range) {
    const PositionRange positions = PositionsOfRange<kPacking>(count, range);
    SquaredSymbols<kPacking> sums = {};
    AddSquaredSymbols<kPacking>(packed, count, positions.begin, positions.end, &sums);
    norm += SquaredNormOf<kPacking>(sums, RangeUnits<kPacking>(units, count, range));
  }
  return norm;
}

template <Packing kPacking, bool kAdd>
void DequantizeOne(const WeightedSymbols& block, std::size_t count, float* out) {
  for (std::size_t range = 0; range < RangesPerPlane(kPacking, count); ++range) {
    const PositionRange positions = PositionsOfRange<kPacking>(count, range);
    DequantizePositions<kPacking, kAdd>(block, RangeUnits<kPacking>(block.units, count, range), count, out,
                                        positions.begin, positions.end);
  }
}

template <Packing kPacking>
void Dequantize(std::span<const WeightedSymbols> blocks, bool add, std::size_t count, float* sum) {
  for (const WeightedSymbols& block : blocks) {
    if (add) {
      DequantizeOne<kPacking, true>(block, count, sum);
    } else {
      DequantizeOne<kPacking, false>(block, count, sum);
    }
    add = true;
  }
}

template <Packing kPacking>
void Fill(QuantizerKernels* kernels) {
  constexpr auto kIndex = static_cast<std::size_t>(kPacking);
  kernels->quantize[kIndex].fill(&Quantize<kPacking>);  // looks at the pointers: one for every Feedback
  kernels->squared_norm[kIndex] = &SquaredNorm<kPacking>;
  kernels->dequantize[kIndex] = &Dequantize<kPacking>;
}

QuantizerKernels MakeKernels() {
  QuantizerKernels kernels;
  kernels.name = "reference";
  kernels.sum_of_squares = &SumOfSquares;
  kernels.max_abs = &MaxAbs;
  Fill<Packing::kByte>(&kernels);
  Fill<Packing::kNibble>(&kernels);
  Fill<Packing::kTernary>(&kernels);
  return kernels;
}

}  // namespace

const QuantizerKernels& ReferenceQuantizerKernels() {
  static const QuantizerKernels kernels = MakeKernels();
  return kernels;
}

}  // namespace autoloco
