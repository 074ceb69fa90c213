// Median and trimmed mean of rows against plain sorts.
#include "server/kernels/robust_mean.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "common/base/random.h"

namespace autoloco::server {
namespace {

TEST(RobustMeanTest, TrimLeavesSomething) {
  EXPECT_EQ(TrimmedAtEachEnd(0.2, 1), 0u);
  EXPECT_EQ(TrimmedAtEachEnd(0.2, 4), 0u);
  EXPECT_EQ(TrimmedAtEachEnd(0.2, 5), 1u);
  EXPECT_EQ(TrimmedAtEachEnd(0.2, 10), 2u);
  EXPECT_EQ(TrimmedAtEachEnd(0.49, 2), 0u);
  EXPECT_EQ(TrimmedAtEachEnd(0.5, 4), 1u);
  EXPECT_EQ(TrimmedAtEachEnd(0, 9), 0u);
}

TEST(RobustMeanTest, ByHand) {
  EXPECT_EQ(CombineValues({Combining::kMedian}, {5, 1, 3}), 3);
  EXPECT_EQ(CombineValues({Combining::kMedian}, {5, 1, 3, 4}), 3.5);
  EXPECT_EQ(CombineValues({Combining::kMedian}, {5}), 5);
  EXPECT_EQ(CombineValues({Combining::kTrimmedMean, 0.25}, {100, 1, 3, 4}), 3.5);
  EXPECT_EQ(CombineValues({Combining::kTrimmedMean, 0}, {2, 1, 3, 4}), 2.5);
}

TEST(RobustMeanTest, RowsEqualPlainSorts) {
  const RandomStream random(3, 1);
  std::uint64_t draw = 0;
  for (const CombineRule& rule : {CombineRule{Combining::kMedian}, CombineRule{Combining::kTrimmedMean, 0.2}}) {
    for (std::size_t voters = 1; voters <= 20; ++voters) {
      for (const std::size_t count : {1u, 1023u, 1024u, 2500u}) {
        std::vector<std::vector<float>> rows(voters, std::vector<float>(count));
        for (auto& row : rows) {
          for (float& value : row)
            value = static_cast<float>(static_cast<int>(random.Uniform(draw++) * 9)) - 4;  // ties
        }
        std::vector<float> want(count);
        for (std::size_t i = 0; i < count; ++i) {
          std::vector<float> column;
          for (const auto& row : rows) column.push_back(row[i]);
          want[i] = CombineValues(rule, column);
        }
        std::vector<float> got(count);
        CombineRows(rule, &rows, count, got.data());
        ASSERT_EQ(got, want) << voters << " voters, " << count << " values";
      }
    }
  }
}

}  // namespace
}  // namespace autoloco::server
