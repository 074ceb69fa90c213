// The quantizer on every tail, alignment, kind of value and instruction set: vectorized = plain bit for bit, and the
// laws of rounding and error feedback.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/codec/quantizer_reference.h"
#include "gtest/gtest.h"

namespace autoloco {
namespace {

constexpr Packing kAllPackings[] = {Packing::kByte, Packing::kNibble, Packing::kTernary};
constexpr std::size_t kShift = 16;  // alignments tried, in values
enum Kind { kGaussian, kSparse, kTies, kOutlier, kTiny, kKinds };

std::vector<float> Draw(std::size_t count, int kind, std::uint64_t seed) {
  const RandomStream stream(seed, static_cast<std::uint64_t>(kind));
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto normal = static_cast<float>(stream.Normal(i));
    values[i] = normal;
    if (kind == kSparse && i % 7 != 0) values[i] = i % 2 == 0 ? 0.0F : -0.0F;
    if (kind == kTies) values[i] = 0.5F * std::nearbyint(3 * normal);
    if (kind == kOutlier && i == count / 2) values[i] = 1e30F;
    if (kind == kTiny) values[i] = normal * 0x1p-130F;  // denormal
  }
  return values;
}

// Everything that a quantizing kernel writes, with guards around it.
struct Written {
  double error = 0;
  std::vector<std::uint8_t> packed;
  std::vector<float> next;
  std::vector<float> view;
};

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// A unit for each range, none like its neighbours; now and then 0.
std::vector<float> DrawUnits(Packing packing, std::size_t count, float unit) {
  std::vector<float> units(UnitCount(packing, count), unit);
  for (std::size_t i = 1; i < units.size(); ++i) {
    units[i] =
        i % 6 == 4 ? 0 : std::clamp(unit * static_cast<float>(i % 5 + 1) / 3, unit == 0 ? 0 : kUnitMin, kUnitMax);
  }
  return units;
}

Written Quantize(const QuantizerKernels& kernels, Packing packing, Feedback feedback, const std::vector<float>& values,
                 const std::vector<float>& residual, std::size_t shift, const std::vector<float>& units) {
  constexpr float kGuard = 12345;
  const std::size_t count = values.size() - shift;
  Written written;
  written.packed.assign(shift + PackedBytes(packing, count) + 1, 0xEE);
  written.next.assign(values.size() + 1, kGuard);
  written.view.assign(values.size() + 1, kGuard);
  QuantizeBlock block;
  block.values = values.data() + shift;
  block.count = count;
  block.units = units.data();
  block.packed = written.packed.data() + shift;
  if (feedback == Feedback::kResidual) {
    block.residual_in = residual.data() + shift;
    block.residual_out = written.next.data() + shift;
  }
  if (feedback == Feedback::kAdded) block.view = written.view.data() + shift;
  written.error = kernels.quantize[static_cast<std::size_t>(packing)][static_cast<std::size_t>(feedback)](block);
  EXPECT_EQ(written.packed.back(), 0xEE);
  EXPECT_EQ(written.next.back(), kGuard);
  EXPECT_EQ(written.view.back(), kGuard);
  return written;
}

// Sums of several blocks, with and without what was there, against the plain loops, which add up one block after the
// other.
void ExpectSameSums(const QuantizerKernels& kernels, Packing packing, const std::vector<std::uint8_t>& packed,
                    std::size_t shift, std::size_t count, const std::vector<float>& units,
                    const std::vector<float>& before) {
  const auto p = static_cast<std::size_t>(packing);
  std::vector<std::uint8_t> mirrored(packed.begin(), packed.begin() + shift + PackedBytes(packing, count));
  std::reverse(mirrored.begin() + shift, mirrored.end());
  const std::vector<float> other_units = DrawUnits(packing, count, 0.7F);
  std::vector<WeightedSymbols> blocks;
  for (int i = 0; i < 9; ++i) {
    const auto* const bytes = i % 2 == 0 ? packed.data() : mirrored.data();
    const float weight = 1.0F - 0.37F * static_cast<float>(i);
    blocks.push_back({bytes + shift, i % 3 == 0 ? units.data() : other_units.data(), weight});
  }
  for (const std::size_t summed : {1u, 2u, 3u, 4u, 5u, 9u}) {
    for (const bool add : {false, true}) {
      std::vector<float> got = before;
      got.push_back(7);
      std::vector<float> want = got;
      kernels.dequantize[p]({blocks.data(), summed}, add, count, got.data() + shift);
      for (std::size_t i = 0; i < summed; ++i) {
        ReferenceQuantizerKernels().dequantize[p]({&blocks[i], 1}, add || i > 0, count, want.data() + shift);
      }
      ASSERT_TRUE(SameBits(got, want)) << p << ": " << summed << " blocks";
    }
  }
}

// All that one kernel set makes of one block against the plain loops.
void ExpectSame(const QuantizerKernels& kernels, const std::vector<float>& values, const std::vector<float>& residual,
                std::size_t shift, float unit) {
  const QuantizerKernels& plain = ReferenceQuantizerKernels();
  const std::size_t count = values.size() - shift;
  for (const float* added : {static_cast<const float*>(nullptr), residual.data() + shift}) {
    ASSERT_EQ(std::bit_cast<std::uint64_t>(kernels.sum_of_squares(values.data() + shift, added, count)),
              std::bit_cast<std::uint64_t>(plain.sum_of_squares(values.data() + shift, added, count)));
    ASSERT_EQ(kernels.max_abs(values.data() + shift, added, count), plain.max_abs(values.data() + shift, added, count));
  }
  for (const Packing packing : kAllPackings) {
    const auto p = static_cast<std::size_t>(packing);
    const std::vector<float> units = DrawUnits(packing, count, unit);
    for (const Feedback feedback : {Feedback::kNone, Feedback::kResidual, Feedback::kAdded}) {
      const Written got = Quantize(kernels, packing, feedback, values, residual, shift, units);
      const Written want = Quantize(plain, packing, feedback, values, residual, shift, units);
      ASSERT_EQ(got.packed, want.packed) << p;
      ASSERT_TRUE(SameBits(got.next, want.next)) << p;
      ASSERT_TRUE(SameBits(got.view, want.view)) << p;
      ASSERT_EQ(std::bit_cast<std::uint64_t>(got.error), std::bit_cast<std::uint64_t>(want.error)) << p;
      ASSERT_EQ(std::bit_cast<std::uint64_t>(kernels.squared_norm[p](got.packed.data() + shift, units.data(), count)),
                std::bit_cast<std::uint64_t>(plain.squared_norm[p](got.packed.data() + shift, units.data(), count)));
    }
    const Written packed = Quantize(plain, packing, Feedback::kNone, values, residual, shift, units);
    ExpectSameSums(kernels, packing, packed.packed, shift, count, units, residual);
  }
}

TEST(QuantizerPropertyTest, EveryKernelSetEqualsThePlainLoopsOnEveryTail) {
  for (const QuantizerKernels* kernels : AllQuantizerKernels()) {
    SCOPED_TRACE(kernels->name);
    // Up to twice what a full group of ternary planes takes, every length.
    for (std::size_t count = 1; count <= 2 * 5 * kSumLanes + 3; ++count) {
      const std::size_t shift = count % kShift;
      const std::vector<float> values = Draw(count + shift, static_cast<int>(count % kKinds), count);
      const std::vector<float> residual = Draw(count + shift, kGaussian, count + 1);
      ASSERT_NO_FATAL_FAILURE(ExpectSame(*kernels, values, residual, shift, 0.75F)) << count;
    }
  }
}

// Where ranges begin and end within a block, for each packing: values about whole ranges of every plane.
TEST(QuantizerPropertyTest, EveryKernelSetEqualsThePlainLoopsAtTheEdgesOfRanges) {
  std::vector<std::size_t> counts = {65536, 65535, 65501};
  for (const std::size_t planes : {1, 2, 5}) {
    for (const std::size_t ranges : {1, 2, 3}) {
      for (const int off : {-19, -1, 0, 1, 2, 21}) {
        counts.push_back(planes * ranges * kRangePositions + static_cast<std::size_t>(off));
      }
    }
  }
  for (const QuantizerKernels* kernels : AllQuantizerKernels()) {
    SCOPED_TRACE(kernels->name);
    for (const std::size_t count : counts) {
      const std::size_t shift = count % kShift;
      const std::vector<float> values = Draw(count + shift, kGaussian, count);
      const std::vector<float> residual = Draw(count + shift, kSparse, count + 1);
      ASSERT_NO_FATAL_FAILURE(ExpectSame(*kernels, values, residual, shift, 0.75F)) << count;
    }
  }
}

TEST(QuantizerPropertyTest, EveryKernelSetEqualsThePlainLoopsOnEveryAlignmentAndKind) {
  for (const QuantizerKernels* kernels : AllQuantizerKernels()) {
    SCOPED_TRACE(kernels->name);
    for (std::size_t shift = 0; shift < kShift; ++shift) {
      for (int kind = 0; kind < kKinds; ++kind) {
        const std::vector<float> values = Draw(1003 + shift, kind, shift);
        const std::vector<float> residual = Draw(1003 + shift, (kind + 1) % kKinds, shift + 1);
        for (const float unit : {0.0F, 1.0F, 0.3F, kUnitMin, 1e28F, kUnitMax}) {
          ASSERT_NO_FATAL_FAILURE(ExpectSame(*kernels, values, residual, shift, unit)) << shift << " " << kind;
        }
      }
    }
  }
}

// Any bytes from the wire decode alike.
TEST(QuantizerPropertyTest, EveryByteDecodesAlikeOnEveryKernelSet) {
  std::vector<std::uint8_t> bytes(256);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
  for (const Packing packing : kAllPackings) {
    const auto p = static_cast<std::size_t>(packing);
    const std::size_t usable = packing == Packing::kTernary ? 243 : 256;
    const std::size_t count = usable * SymbolsPerByte(packing);
    const std::vector<float> units = DrawUnits(packing, count, 0.3F);
    std::vector<float> want(count);
    const WeightedSymbols block = {bytes.data(), units.data(), 1};
    ReferenceQuantizerKernels().dequantize[p]({&block, 1}, false, count, want.data());
    for (const QuantizerKernels* kernels : AllQuantizerKernels()) {
      std::vector<float> got(count);
      kernels->dequantize[p]({&block, 1}, false, count, got.data());
      EXPECT_TRUE(SameBits(got, want)) << kernels->name;
    }
  }
}

// |v - decoded| is at most half a unit of the value's range, or, beyond the largest symbol, what is beyond it; what
// stays behind is exact there, and is v - decoded rounded once anywhere.
TEST(QuantizerPropertyTest, ErrorBoundAndExactResidual) {
  constexpr std::size_t kCount = 30000;
  for (const Packing packing : kAllPackings) {
    const std::vector<float> units = DrawUnits(packing, kCount, 0.31F);
    for (int kind = 0; kind < kKinds; ++kind) {
      const std::vector<float> values = Draw(kCount, kind, 3);
      const std::vector<float> residual = Draw(kCount, kGaussian, 4);
      const Written kept = Quantize(BestQuantizerKernels(), packing, Feedback::kResidual, values, residual, 0, units);
      std::vector<float> decoded(kCount);
      const WeightedSymbols block = {kept.packed.data(), units.data(), 1};
      BestQuantizerKernels().dequantize[static_cast<std::size_t>(packing)]({&block, 1}, false, kCount, decoded.data());
      std::size_t seen = 0;
      for (std::size_t range = 0; range < units.size(); ++range) {
        const float unit = units[range];
        const float largest = static_cast<float>(SymbolMax(packing)) * unit;
        const ValueRange range_values = ValuesOfUnit(packing, kCount, range);
        seen += range_values.size;
        for (std::size_t i = range_values.begin; i < range_values.begin + range_values.size; ++i) {
          const float v = values[i] + residual[i];
          ASSERT_EQ(kept.next[i], v - decoded[i]) << i;
          if (std::abs(v) <= largest + unit / 2) {
            const double error = static_cast<double>(v) - decoded[i];
            ASSERT_LE(std::abs(error), 0.5 * unit * (1 + 1e-5)) << v;
            ASSERT_NEAR(static_cast<double>(kept.next[i]) + decoded[i], v, std::abs(v) * 0x1p-24) << i;
          } else {
            ASSERT_EQ(std::abs(decoded[i]), largest) << v;
            ASSERT_GE(decoded[i] * v, 0) << v;
          }
        }
      }
      ASSERT_EQ(seen, kCount);
    }
  }
}

}  // namespace
}  // namespace autoloco
