#include "common/codec/quantizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/codec/quantizer_reference.h"
#include "gtest/gtest.h"

namespace autoloco {
namespace {

// Reference-packs `values` with units of 1.
std::vector<std::uint8_t> Pack(Packing packing, std::vector<float> values) {
  std::vector<std::uint8_t> packed(PackedBytes(packing, values.size()));
  const std::vector<float> units(UnitCount(packing, values.size()), 1);
  QuantizeBlock block;
  block.values = values.data();
  block.count = values.size();
  block.units = units.data();
  block.packed = packed.data();
  ReferenceQuantizerKernels().quantize[static_cast<std::size_t>(packing)][0](block);
  return packed;
}

using ByteVector = std::vector<std::uint8_t>;

TEST(QuantizerTest, PacksToTheByte) {
  // Ties go to even; beyond the largest symbol everything is the largest symbol.
  EXPECT_EQ(Pack(Packing::kByte, {0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 1000, -1000, 0.50001F}),
            (ByteVector{0, 2, 2, 0, 0xFE, 127, 0x81, 1}));
  // Values 0, 1, 2 in the low nibbles, 3 and 4 in the high ones, the missing sixth a zero.
  EXPECT_EQ(Pack(Packing::kNibble, {0, 1, -7, 7, -1}), (ByteVector{0xF8, 0x79, 0x81}));
  // Planes 0 .. 4 have weights 1, 3, 9, 27, 81; digits are symbol + 1.
  EXPECT_EQ(Pack(Packing::kTernary, {1, 0, 0, 0, 0}), ByteVector{122});
  EXPECT_EQ(Pack(Packing::kTernary, {0, 0, 0, 0, -1}), ByteVector{40});
  EXPECT_EQ(Pack(Packing::kTernary, {1, 1, 1, 1, 1}), ByteVector{242});
  // Six values: two bytes, planes of two; value 5 is the second of plane 2.
  EXPECT_EQ(Pack(Packing::kTernary, {0, 0, 0, 0, 0, 1}), (ByteVector{121, 130}));
}

std::vector<std::size_t> SizesOfRanges(Packing packing, std::size_t count) {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < UnitCount(packing, count); ++i) sizes.push_back(ValuesOfUnit(packing, count, i).size);
  return sizes;
}

TEST(QuantizerTest, RangesAreNeighbours) {
  for (const Packing packing : {Packing::kByte, Packing::kNibble}) {  // of a full block: consecutive 4,096
    for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(ValuesOfUnit(packing, 65536, i).begin, 4096 * i);
    EXPECT_EQ(SizesOfRanges(packing, 65536), std::vector<std::size_t>(16, 4096));
  }
  EXPECT_EQ(SizesOfRanges(Packing::kTernary, 65536),  // planes of 13,108 positions, four values short of five planes
            (std::vector<std::size_t>{4096, 4096, 4096, 820,  4096, 4096, 4096, 820,  4096, 4096,
                                      4096, 820,  4096, 4096, 4096, 820,  4096, 4096, 4096, 816}));
  EXPECT_EQ(ValuesOfUnit(Packing::kTernary, 65536, 5).begin, 13108u + 4096);
  // Short blocks: planes of 4,097 and of 2 positions, of which the last ones have no values.
  EXPECT_EQ(SizesOfRanges(Packing::kNibble, 8193), (std::vector<std::size_t>{4096, 1, 4096, 0}));
  EXPECT_EQ(SizesOfRanges(Packing::kTernary, 6), (std::vector<std::size_t>{2, 2, 2, 0, 0}));
  EXPECT_EQ(SizesOfRanges(Packing::kByte, 1), std::vector<std::size_t>{1});
  EXPECT_EQ(SizesOfRanges(Packing::kByte, 0), std::vector<std::size_t>{});
}

TEST(QuantizerTest, UnitsAreBounded) {
  EXPECT_EQ(RmsUnit(4 * 9.0, 4, 1.5), 4.5F);
  EXPECT_EQ(RmsUnit(0, 4, 1.5), 0);
  EXPECT_EQ(RmsUnit(1e-90, 1, 1), 0);        // an fp32 denormal squared
  EXPECT_EQ(RmsUnit(1e76, 1, 4), kUnitMax);  // 4e38 is no fp32
  EXPECT_EQ(RmsUnit(1e30, 1, 1), 1e15F);
  EXPECT_EQ(MaxAbsUnit(127), 1.0F);
  EXPECT_EQ(MaxAbsUnit(0), 0);
  EXPECT_EQ(MaxAbsUnit(1e-37F), 0);
  EXPECT_EQ(MaxAbsUnit(std::numeric_limits<float>::max()), kUnitMax);
  for (const float unit : {0.0F, kUnitMin, 1.0F, kUnitMax}) EXPECT_TRUE(IsUnit(unit)) << unit;
  for (const float unit : {-0.0F, -1.0F, kUnitMin / 2, kUnitMax * 2, std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_FALSE(IsUnit(unit)) << unit;
  }
}

TEST(QuantizerTest, EveryByteDecodes) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<std::uint8_t>(byte);
    EXPECT_EQ(SymbolAt<Packing::kByte>(value, 0), byte < 128 ? byte : byte - 256);
    EXPECT_EQ(SymbolAt<Packing::kNibble>(value, 0), byte % 16 - 8);
    EXPECT_EQ(SymbolAt<Packing::kNibble>(value, 1), byte / 16 - 8);
    int rest = byte;
    for (std::size_t plane = 0; plane < 5; ++plane, rest /= 3) {
      EXPECT_EQ(SymbolAt<Packing::kTernary>(value, plane), rest % 3 - 1);
    }
    EXPECT_EQ(IsTernary(&value, 1), byte <= 242);
  }
}

TEST(QuantizerTest, TheBestKernelsAreTheLastOfAll) {
  const std::vector<const QuantizerKernels*> all = AllQuantizerKernels();
  ASSERT_GE(all.size(), 2u);
  EXPECT_EQ(std::string(all.front()->name), "reference");
  EXPECT_EQ(all.back(), &BestQuantizerKernels());
  std::string names;
  for (const QuantizerKernels* kernels : all) names += std::string(kernels->name) + " ";
  RecordProperty("kernels", names);
}

TEST(QuantizerTest, SumsSeeWhatIsNotFinite) {
  for (const QuantizerKernels* kernels : AllQuantizerKernels()) {
    for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
      for (std::size_t at = 0; at < 40; ++at) {
        std::vector<float> values(40, std::numeric_limits<float>::max() / 2);
        EXPECT_TRUE(std::isfinite(kernels->sum_of_squares(values.data(), nullptr, values.size())));
        values[at] = bad;
        EXPECT_FALSE(std::isfinite(kernels->sum_of_squares(values.data(), nullptr, values.size()))) << kernels->name;
      }
    }
  }
}

}  // namespace
}  // namespace autoloco
