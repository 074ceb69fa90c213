// The quantizer's loops once for every instruction set: Highway compiles this file again for each of them and picks at
// run time. quantizer_reference.h says what is computed; the vector loops do the same operations in the same order, and
// what does not fill a vector goes through the reference's own code.
#include <algorithm>
#include <cstring>

#include "common/codec/quantizer_reference.h"

// Vectors whose length is not known when compiling cannot stand in arrays.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/codec/quantizer_kernels.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace autoloco {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using I32 = hn::RebindToSigned<F32>;
using U8 = hn::Rebind<std::uint8_t, F32>;
using I8 = hn::Rebind<std::int8_t, F32>;
constexpr std::size_t kLanes = hn::MaxLanes(F32());
constexpr std::size_t kGroups = kSumLanes / kLanes;  // vectors that together have kSumLanes lanes
static_assert(kSumLanes % kLanes == 0);
constexpr std::size_t kSumBlocks = 4;  // added up at once: their tables fit into the registers

double SumOfSquares(const float* values, const float* residual, std::size_t count) {
  using F64 = hn::ScalableTag<double>;
  constexpr F64 kF64;
  constexpr hn::Rebind<float, F64> kHalf;  // as many values as fit when widened
  constexpr std::size_t kLanes64 = hn::MaxLanes(F64());
  constexpr std::size_t kGroups64 = kSumLanes / kLanes64;
  hn::VFromD<F64> sums[kGroups64];
  for (auto& sum : sums) sum = hn::Zero(kF64);
  std::size_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes) {
    for (std::size_t group = 0; group < kGroups64; ++group) {
      const std::size_t at = i + group * kLanes64;
      auto v = hn::LoadU(kHalf, values + at);
      if (residual != nullptr) v = hn::Add(v, hn::LoadU(kHalf, residual + at));
      const auto wide = hn::PromoteTo(kF64, v);
      sums[group] = hn::Add(sums[group], hn::Mul(wide, wide));
    }
  }
  double lanes[kSumLanes];
  for (std::size_t group = 0; group < kGroups64; ++group) hn::StoreU(sums[group], kF64, lanes + group * kLanes64);
  AddSquares(values, residual, i, count, lanes);
  return SumInOrder(lanes);
}

float MaxAbs(const float* values, const float* residual, std::size_t count) {
  constexpr F32 kF32;
  auto largest = hn::Zero(kF32);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    auto v = hn::LoadU(kF32, values + i);
    if (residual != nullptr) v = hn::Add(v, hn::LoadU(kF32, residual + i));
    largest = hn::Max(largest, hn::Abs(v));
  }
  float lanes[kLanes];
  hn::StoreU(largest, kF32, lanes);
  return MaxAbsFrom(*std::max_element(lanes, lanes + kLanes), values, residual, i, count);
}

// Where in a range the positions end whose P values all exist, cut to whole steps. REQUIRES: `step` divides
// kRangePositions.
template <Packing kPacking>
std::size_t FullEnd(PositionRange range, std::size_t count, std::size_t step) {
  const std::size_t before_last = (SymbolsPerByte(kPacking) - 1) * PackedBytes(kPacking, count);
  const std::size_t full = count > before_last ? (count - before_last) / step * step : 0;
  return std::clamp(full, range.begin, std::max(range.begin, range.end / step * step));
}

template <Packing kPacking>
HWY_INLINE hn::VFromD<U32> TimesRadix(hn::VFromD<U32> bytes) {
  if constexpr (kPacking == Packing::kNibble) {
    return hn::ShiftLeft<4>(bytes);
  } else {
    return hn::Add(hn::ShiftLeft<1>(bytes), bytes);
  }
}

// One range. Returns its squared error.
template <Packing kPacking, Feedback kFeedback>
double QuantizeRange(const QuantizeBlock& block, std::size_t range) {
  constexpr F32 kF32;
  constexpr U32 kU32;
  constexpr std::size_t kPlanes = SymbolsPerByte(kPacking);
  const std::size_t stride = PackedBytes(kPacking, block.count);
  const PositionRange positions = PositionsOfRange<kPacking>(block.count, range);
  const std::size_t full = FullEnd<kPacking>(positions, block.count, kSumLanes);
  const RangeUnits<kPacking> range_units(block.units, block.count, range);
  const auto limit = hn::Set(kF32, static_cast<float>(SymbolMax(kPacking)));
  const auto minus_limit = hn::Neg(limit);
  const auto magic = hn::Set(kF32, kRoundingMagic);
  const auto offset = hn::Set(kU32, std::uint32_t{PackedOffset(kPacking)});
  hn::VFromD<F32> units[kPlanes];
  hn::VFromD<F32> inverses[kPlanes];
  hn::VFromD<F32> errors[kPlanes][kGroups];
  for (std::size_t plane = 0; plane < kPlanes; ++plane) {
    units[plane] = hn::Set(kF32, range_units[plane]);
    inverses[plane] = hn::Set(kF32, Reciprocal(range_units[plane]));
    for (auto& error : errors[plane]) error = hn::Zero(kF32);
  }
  for (std::size_t j = positions.begin; j < full; j += kSumLanes) {
    for (std::size_t group = 0; group < kGroups; ++group) {
      auto bytes = hn::Zero(kU32);
      for (std::size_t plane = kPlanes; plane-- > 0;) {
        const std::size_t at = plane * stride + j + group * kLanes;
        auto v = hn::LoadU(kF32, block.values + at);
        if constexpr (kFeedback == Feedback::kResidual) v = hn::Add(v, hn::LoadU(kF32, block.residual_in + at));
        const auto x = hn::Mul(v, inverses[plane]);
        const auto rounded = hn::Add(hn::Min(hn::Max(x, minus_limit), limit), magic);
        const auto q = hn::Sub(rounded, magic);
        const auto error = hn::Sub(x, q);
        errors[plane][group] = hn::Add(errors[plane][group], hn::Mul(error, error));
        if constexpr (kFeedback == Feedback::kResidual) {
          hn::StoreU(hn::Sub(v, hn::Mul(q, units[plane])), kF32, block.residual_out + at);
        }
        if constexpr (kFeedback == Feedback::kAdded) {
          hn::StoreU(hn::Add(hn::LoadU(kF32, block.view + at), hn::Mul(q, units[plane])), kF32, block.view + at);
        }
        const auto bits = hn::BitCast(kU32, rounded);
        bytes = plane + 1 == kPlanes ? bits : hn::Add(TimesRadix<kPacking>(bytes), bits);
      }
      hn::StoreU(hn::TruncateTo(U8(), hn::Add(bytes, offset)), U8(), block.packed + j + group * kLanes);
    }
  }
  ErrorLanes<kPacking> lanes;
  for (std::size_t plane = 0; plane < kPlanes; ++plane) {
    for (std::size_t group = 0; group < kGroups; ++group) {
      hn::StoreU(errors[plane][group], kF32, lanes[plane].data() + group * kLanes);
    }
  }
  QuantizePositions<kPacking>(block, range_units, full, positions.end, &lanes);
  return SquaredError<kPacking>(lanes, range_units);
}

template <Packing kPacking, Feedback kFeedback>
double Quantize(const QuantizeBlock& block) {
  double error = 0;
  for (std::size_t range = 0; range < RangesPerPlane(kPacking, block.count); ++range) {
    error += QuantizeRange<kPacking, kFeedback>(block, range);
  }
  return error;
}

// The symbols of one plane after the other, as floats.
template <Packing kPacking, typename Use>
HWY_INLINE void ForEachPlane(const std::uint8_t* packed, const Use& use) {
  constexpr F32 kF32;
  constexpr U32 kU32;
  constexpr I32 kI32;
  if constexpr (kPacking == Packing::kByte) {
    const auto bytes = hn::BitCast(I8(), hn::LoadU(U8(), packed));
    use(0, hn::ConvertTo(kF32, hn::PromoteTo(kI32, bytes)));
  } else if constexpr (kPacking == Packing::kNibble) {
    const auto bytes = hn::PromoteTo(kU32, hn::LoadU(U8(), packed));
    const auto eight = hn::Set(kF32, 8.0F);
    const auto low = hn::And(bytes, hn::Set(kU32, 15U));
    use(0, hn::Sub(hn::ConvertTo(kF32, hn::BitCast(kI32, low)), eight));
    use(1, hn::Sub(hn::ConvertTo(kF32, hn::BitCast(kI32, hn::ShiftRight<4>(bytes))), eight));
  } else {
    const auto half = hn::Set(kF32, 0.5F);
    const auto third = hn::Set(kF32, 1.0F / 3.0F);
    const auto three = hn::Set(kF32, 3.0F);
    const auto one = hn::Set(kF32, 1.0F);
    auto rest = hn::ConvertTo(kF32, hn::BitCast(kI32, hn::PromoteTo(kU32, hn::LoadU(U8(), packed))));
    for (std::size_t plane = 0; plane < SymbolsPerByte(kPacking); ++plane) {
      // (rest + 1/2) / 3 is never nearer than 1/6 to an integer: cutting it gives the quotient.
      const auto quotient = hn::ConvertTo(kF32, hn::ConvertTo(kI32, hn::Mul(hn::Add(rest, half), third)));
      use(plane, hn::Sub(hn::Sub(rest, hn::Mul(quotient, three)), one));
      rest = quotient;
    }
  }
}

// The 16 values that a nibble can stand for, times the weight.
HWY_INLINE hn::VFromD<F32> NibbleTable(float unit, float weight) {
  constexpr F32 kF32;
  const auto symbols = hn::Sub(hn::Iota(kF32, 0.0F), hn::Set(kF32, 8.0F));
  return hn::Mul(hn::Set(kF32, weight), hn::Mul(symbols, hn::Set(kF32, unit)));
}

// Both symbols of each byte, looked up in the tables of their planes.
struct NibblePair {
  hn::VFromD<F32> low;
  hn::VFromD<F32> high;
};
HWY_INLINE NibblePair LookUp(const std::uint8_t* packed, hn::VFromD<F32> low_table, hn::VFromD<F32> high_table) {
  constexpr F32 kF32;
  constexpr U32 kU32;
  const auto bytes = hn::PromoteTo(kU32, hn::LoadU(U8(), packed));
  const auto low = hn::IndicesFromVec(kF32, hn::And(bytes, hn::Set(kU32, 15U)));
  const auto high = hn::IndicesFromVec(kF32, hn::ShiftRight<4>(bytes));
  return {hn::TableLookupLanes(low_table, low), hn::TableLookupLanes(high_table, high)};
}

// Where a vector holds 16 floats: the positions begin .. full - 1 of several blocks, so that a sum is read and written
// once for all of them.
template <std::size_t kBlocks, bool kAdd>
void SumNibbles(const WeightedSymbols* blocks, std::size_t count, std::size_t range, std::size_t begin,
                std::size_t full, float* sum) {
  constexpr F32 kF32;
  const std::size_t stride = PackedBytes(Packing::kNibble, count);
  hn::VFromD<F32> low_tables[kBlocks];
  hn::VFromD<F32> high_tables[kBlocks];
  for (std::size_t b = 0; b < kBlocks; ++b) {
    const RangeUnits<Packing::kNibble> units(blocks[b].units, count, range);
    low_tables[b] = NibbleTable(units[0], blocks[b].weight);
    high_tables[b] = NibbleTable(units[1], blocks[b].weight);
  }
  for (std::size_t j = begin; j < full; j += kLanes) {
    NibblePair sums = LookUp(blocks[0].packed + j, low_tables[0], high_tables[0]);
    if constexpr (kAdd) {
      sums.low = hn::Add(hn::LoadU(kF32, sum + j), sums.low);
      sums.high = hn::Add(hn::LoadU(kF32, sum + stride + j), sums.high);
    }
    HWY_UNROLL(kSumBlocks)
    for (std::size_t b = 1; b < kBlocks; ++b) {
      const NibblePair values = LookUp(blocks[b].packed + j, low_tables[b], high_tables[b]);
      sums.low = hn::Add(sums.low, values.low);
      sums.high = hn::Add(sums.high, values.high);
    }
    hn::StoreU(sums.low, kF32, sum + j);
    hn::StoreU(sums.high, kF32, sum + stride + j);
  }
}

template <bool kAdd>
void SumNibbles(std::span<const WeightedSymbols> blocks, std::size_t count, std::size_t range, std::size_t begin,
                std::size_t full, float* sum) {
  switch (blocks.size()) {
    case 1: return SumNibbles<1, kAdd>(blocks.data(), count, range, begin, full, sum);
    case 2: return SumNibbles<2, kAdd>(blocks.data(), count, range, begin, full, sum);
    case 3: return SumNibbles<3, kAdd>(blocks.data(), count, range, begin, full, sum);
    default: return SumNibbles<4, kAdd>(blocks.data(), count, range, begin, full, sum);
  }
}

// The same for any packing and width, one block.
template <Packing kPacking, bool kAdd>
void SumPositions(const WeightedSymbols& block, std::size_t count, std::size_t range, std::size_t begin,
                  std::size_t full, float* sum) {
  constexpr F32 kF32;
  const std::size_t stride = PackedBytes(kPacking, count);
  const RangeUnits<kPacking> units(block.units, count, range);
  const auto weight = hn::Set(kF32, block.weight);
  for (std::size_t j = begin; j < full; j += kLanes) {
    ForEachPlane<kPacking>(block.packed + j, [&](std::size_t plane, hn::VFromD<F32> q) HWY_ATTR {
      float* const out = sum + plane * stride + j;
      const auto value = hn::Mul(weight, hn::Mul(q, hn::Set(kF32, units[plane])));
      hn::StoreU(kAdd ? hn::Add(hn::LoadU(kF32, out), value) : value, kF32, out);
    });
  }
}

// One range of blocks that are at most kSumBlocks.
template <Packing kPacking, bool kAdd>
void SumRange(std::span<const WeightedSymbols> blocks, std::size_t count, std::size_t range, float* sum) {
  const PositionRange positions = PositionsOfRange<kPacking>(count, range);
  const std::size_t full = FullEnd<kPacking>(positions, count, kLanes);
  if constexpr (kPacking == Packing::kNibble && kLanes == 16) {
    SumNibbles<kAdd>(blocks, count, range, positions.begin, full, sum);
  } else {
    SumPositions<kPacking, kAdd>(blocks.front(), count, range, positions.begin, full, sum);
    for (const WeightedSymbols& block : blocks.subspan(1)) {
      SumPositions<kPacking, true>(block, count, range, positions.begin, full, sum);
    }
  }
  bool add = kAdd;
  for (const WeightedSymbols& block : blocks) {
    const RangeUnits<kPacking> units(block.units, count, range);
    if (add) {
      DequantizePositions<kPacking, true>(block, units, count, sum, full, positions.end);
    } else {
      DequantizePositions<kPacking, false>(block, units, count, sum, full, positions.end);
    }
    add = true;
  }
}

// Range by range, so that the sums of one stay in the nearest cache.
template <Packing kPacking>
void Dequantize(std::span<const WeightedSymbols> blocks, bool add, std::size_t count, float* sum) {
  for (std::size_t range = 0; range < RangesPerPlane(kPacking, count); ++range) {
    bool add_now = add;
    for (std::size_t first = 0; first < blocks.size(); first += kSumBlocks) {
      const auto some = blocks.subspan(first, std::min(kSumBlocks, blocks.size() - first));
      if (add_now) {
        SumRange<kPacking, true>(some, count, range, sum);
      } else {
        SumRange<kPacking, false>(some, count, range, sum);
      }
      add_now = true;
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
using Bytes = hn::ScalableTag<std::uint8_t>;
using U64 = hn::Repartition<std::uint64_t, Bytes>;

std::uint32_t SumOfLanes(hn::VFromD<U64> sums) {
  std::uint64_t lanes[hn::MaxLanes(U64())];
  hn::StoreU(sums, U64(), lanes);
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : lanes) sum += lane;
  return static_cast<std::uint32_t>(sum);
}

// Symbols squared through a table of the sixteen there are, up to the end of what fills vectors, which it returns.
std::size_t AddSquaredNibbles(const std::uint8_t* packed, std::size_t count, PositionRange positions,
                              SquaredSymbols<Packing::kNibble>* sums) {
  constexpr Bytes kBytes;
  constexpr U64 kU64;
  constexpr std::size_t kWidth = hn::MaxLanes(kBytes);
  alignas(16) static constexpr std::uint8_t kSquares[16] = {64, 49, 36, 25, 16, 9, 4, 1, 0, 1, 4, 9, 16, 25, 36, 49};
  const auto squares = hn::LoadDup128(kBytes, kSquares);
  const auto low_bits = hn::Set(kBytes, std::uint8_t{15});
  auto low_sums = hn::Zero(kU64);
  auto high_sums = hn::Zero(kU64);
  const std::size_t full = FullEnd<Packing::kNibble>(positions, count, kWidth);
  for (std::size_t j = positions.begin; j < full; j += kWidth) {
    const auto bytes = hn::LoadU(kBytes, packed + j);
    const auto low = hn::And(bytes, low_bits);
    const auto high = hn::And(hn::BitCast(kBytes, hn::ShiftRight<4>(hn::BitCast(kU64, bytes))), low_bits);
    low_sums = hn::Add(low_sums, hn::SumsOf8(hn::TableLookupBytes(squares, low)));
    high_sums = hn::Add(high_sums, hn::SumsOf8(hn::TableLookupBytes(squares, high)));
  }
  (*sums)[0] += SumOfLanes(low_sums);
  (*sums)[1] += SumOfLanes(high_sums);
  return full;
}
#endif

template <Packing kPacking>
double SquaredNorm(const std::uint8_t* packed, const float* units, std::size_t count) {
  double norm = 0;
  for (std::size_t range = 0; range < RangesPerPlane(kPacking, count); ++range) {
    const PositionRange positions = PositionsOfRange<kPacking>(count, range);
    SquaredSymbols<kPacking> sums = {};
    std::size_t done = positions.begin;
#if HWY_TARGET != HWY_SCALAR
    if constexpr (kPacking == Packing::kNibble) done = AddSquaredNibbles(packed, count, positions, &sums);
#endif
    AddSquaredSymbols<kPacking>(packed, count, done, positions.end, &sums);
    norm += SquaredNormOf<kPacking>(sums, RangeUnits<kPacking>(units, count, range));
  }
  return norm;
}

template <Packing kPacking>
void Fill(QuantizerKernels* kernels) {
  constexpr auto kIndex = static_cast<std::size_t>(kPacking);
  kernels->quantize[kIndex] = {&Quantize<kPacking, Feedback::kNone>, &Quantize<kPacking, Feedback::kResidual>,
                               &Quantize<kPacking, Feedback::kAdded>};
  kernels->squared_norm[kIndex] = &SquaredNorm<kPacking>;
  kernels->dequantize[kIndex] = &Dequantize<kPacking>;
}

QuantizerKernels MakeKernels() {
  QuantizerKernels kernels;
  kernels.name = hwy::TargetName(HWY_TARGET);
  kernels.sum_of_squares = &SumOfSquares;
  kernels.max_abs = &MaxAbs;
  Fill<Packing::kByte>(&kernels);
  Fill<Packing::kNibble>(&kernels);
  Fill<Packing::kTernary>(&kernels);
  return kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace autoloco
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autoloco {
namespace {

HWY_EXPORT(MakeKernels);

// The table of one instruction set. Highway's own choice is one for the process; ours is made aside from it, so that
// nothing else sees it.
QuantizerKernels MakeKernelsFor([[maybe_unused]] std::int64_t target) {
#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
  return HWY_STATIC_DISPATCH(MakeKernels)();  // compiled for one only
#else
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  return HWY_DISPATCH_TABLE(MakeKernels)[chosen.GetIndex()]();
#endif
}

// Best last.
std::vector<QuantizerKernels> MakeTables() {
  std::vector<QuantizerKernels> tables = {ReferenceQuantizerKernels()};
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();  // best first
  for (auto target = targets.rbegin(); target != targets.rend(); ++target) tables.push_back(MakeKernelsFor(*target));
  return tables;
}

const std::vector<QuantizerKernels>& Tables() {
  static const std::vector<QuantizerKernels> tables = MakeTables();
  return tables;
}

}  // namespace

const QuantizerKernels& BestQuantizerKernels() { return Tables().back(); }

std::vector<const QuantizerKernels*> AllQuantizerKernels() {
  std::vector<const QuantizerKernels*> all;
  for (const QuantizerKernels& kernels : Tables()) all.push_back(&kernels);
  return all;
}

}  // namespace autoloco
#endif  // HWY_ONCE
