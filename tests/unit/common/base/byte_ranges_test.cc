#include "common/base/byte_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "common/base/random.h"

namespace autoloco {

void PrintTo(const ByteRange& range, std::ostream* out) { *out << "[" << range.first << "+" << range.count << "]"; }

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ByteRangesTest, WhatWasThereIsNotAddedAgain) {
  ByteRanges ranges;
  EXPECT_THAT(ranges.Add({10, 10}), ElementsAre(ByteRange{10, 10}));
  EXPECT_THAT(ranges.Add({10, 10}), IsEmpty());
  EXPECT_THAT(ranges.Add({12, 3}), IsEmpty());
  EXPECT_THAT(ranges.Add({5, 10}), ElementsAre(ByteRange{5, 5}));
  EXPECT_THAT(ranges.Add({18, 6}), ElementsAre(ByteRange{20, 4}));
  EXPECT_THAT(ranges.Add({30, 2}), ElementsAre(ByteRange{30, 2}));
  EXPECT_THAT(ranges.Add({0, 40}), ElementsAre(ByteRange{0, 5}, ByteRange{24, 6}, ByteRange{32, 8}));
  EXPECT_THAT(ranges.Add({7, 0}), IsEmpty());
  EXPECT_THAT(ranges.Missing(40, 10), IsEmpty());
}

TEST(ByteRangesTest, MissingIsTheRest) {
  ByteRanges ranges;
  EXPECT_THAT(ranges.Missing(0, 3), IsEmpty());
  EXPECT_THAT(ranges.Missing(9, 3), ElementsAre(ByteRange{0, 9}));
  ranges.Add({2, 2});
  ranges.Add({6, 1});
  EXPECT_THAT(ranges.Missing(9, 3), ElementsAre(ByteRange{0, 2}, ByteRange{4, 2}, ByteRange{7, 2}));
  EXPECT_THAT(ranges.Missing(7, 3), ElementsAre(ByteRange{0, 2}, ByteRange{4, 2}));
}

TEST(ByteRangesTest, TooManyGapsBecomeOne) {
  ByteRanges ranges;
  for (std::uint64_t first = 1; first < 20; first += 2) ranges.Add({first, 1});
  EXPECT_THAT(ranges.Missing(20, 2), ElementsAre(ByteRange{0, 1}, ByteRange{2, 17}));
  EXPECT_THAT(ranges.Missing(20, 1), ElementsAre(ByteRange{0, 19}));
}

// The same with one flag a byte.
TEST(ByteRangesTest, EqualsTheNaiveSet) {
  constexpr std::uint64_t kSize = 64;
  const RandomStream random(7, 1);
  std::uint64_t draws = 0;
  for (int trial = 0; trial < 200; ++trial) {
    ByteRanges ranges;
    std::vector<bool> flags(kSize);
    for (int step = 0; step < 12; ++step) {
      const std::uint64_t first = random.Bits(draws++) % kSize;
      const ByteRange range{first, random.Bits(draws++) % (kSize - first + 1)};
      std::vector<bool> added(kSize);
      for (std::uint64_t i = range.first; i < range.end(); ++i) {
        added[i] = !flags[i];
        flags[i] = true;
      }
      std::vector<bool> found(kSize);
      for (const ByteRange& part : ranges.Add(range)) {
        for (std::uint64_t i = part.first; i < part.end(); ++i) found[i] = true;
      }
      ASSERT_EQ(found, added);
      const ByteRange gone{random.Bits(draws++) % kSize, random.Bits(draws++) % 8};
      ranges.Remove(gone);
      for (std::uint64_t i = gone.first; i < std::min(gone.end(), kSize); ++i) flags[i] = false;
      std::vector<bool> there(kSize, true);
      for (const ByteRange& part : ranges.Missing(kSize, kSize)) {
        for (std::uint64_t i = part.first; i < part.end(); ++i) there[i] = false;
      }
      ASSERT_EQ(there, flags);
    }
  }
}

TEST(SplitRangesTest, PiecesOfOneSize) {
  const std::vector<ByteRange> whole = {{0, 10}};
  EXPECT_THAT(SplitRanges(whole, 4, 1),
              ElementsAre(ByteRange{0, 3}, ByteRange{3, 3}, ByteRange{6, 3}, ByteRange{9, 1}));
  EXPECT_THAT(SplitRanges(whole, 1, 1), ElementsAre(ByteRange{0, 10}));
  EXPECT_THAT(SplitRanges(whole, 4, 6), ElementsAre(ByteRange{0, 6}, ByteRange{6, 4}));
  EXPECT_THAT(SplitRanges(whole, 4, 100), ElementsAre(ByteRange{0, 10}));
}

TEST(SplitRangesTest, GapsStayGaps) {
  const std::vector<ByteRange> ranges = {{0, 2}, {10, 6}};
  EXPECT_EQ(TotalBytes(ranges), 8u);
  EXPECT_THAT(SplitRanges(ranges, 2, 1), ElementsAre(ByteRange{0, 2}, ByteRange{10, 4}, ByteRange{14, 2}));
  EXPECT_THAT(SplitRanges({}, 2, 1), IsEmpty());
}

}  // namespace
}  // namespace autoloco
