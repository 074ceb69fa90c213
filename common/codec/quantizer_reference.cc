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
  float lanes[kSumLanes] = {};
  QuantizePositions<kPacking>(block, 0, PackedBytes(kPacking, block.count), lanes);
  return SumInOrder(lanes);
}

template <Packing kPacking>
std::uint64_t SquaredSymbols(const std::uint8_t* packed, std::size_t count) {
  return SumSquaredSymbols<kPacking>(packed, count, 0);
}

template <Packing kPacking>
void Dequantize(const std::uint8_t* packed, float unit, std::size_t count, float* values) {
  DequantizePositions<kPacking, false>(packed, unit, count, 1, values, 0, PackedBytes(kPacking, count));
}

template <Packing kPacking>
void DequantizeAdd(const std::uint8_t* packed, float unit, std::size_t count, float weight, float* sum) {
  DequantizePositions<kPacking, true>(packed, unit, count, weight, sum, 0, PackedBytes(kPacking, count));
}

template <Packing kPacking>
void Fill(QuantizerKernels* kernels) {
  constexpr auto kIndex = static_cast<std::size_t>(kPacking);
  kernels->quantize[kIndex].fill(&Quantize<kPacking>);  // looks at the pointers: one for every Feedback
  kernels->squared_symbols[kIndex] = &SquaredSymbols<kPacking>;
  kernels->dequantize[kIndex] = &Dequantize<kPacking>;
  kernels->dequantize_add[kIndex] = &DequantizeAdd<kPacking>;
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
