#include "common/tensor/difference.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace autoloco {
namespace {

TEST(DifferenceTest, IsBaseMinusValue) {
  for (std::size_t size = 0; size < 70; ++size) {
    std::vector<float> base(size);
    std::vector<float> values(size);
    std::vector<float> want(size);
    for (std::size_t i = 0; i < size; ++i) {
      base[i] = 0.1f * static_cast<float>(i);
      values[i] = 3.0f - static_cast<float>(i * i);
      want[i] = base[i] - values[i];
    }
    std::vector<float> difference(size);
    EXPECT_TRUE(Subtract(base, values, difference));
    EXPECT_EQ(difference, want);
  }
}

TEST(DifferenceTest, SaysWhereverADifferenceIsNotFinite) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (std::size_t size = 1; size < 70; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      const std::vector<float> base(size, kLargest);
      for (const float bad : {-kLargest, std::numeric_limits<float>::infinity(), std::nanf("")}) {
        std::vector<float> values(size, kLargest);
        values[at] = bad;
        std::vector<float> difference(size);
        ASSERT_FALSE(Subtract(base, values, difference)) << at << " of " << size;
      }
    }
  }
}

}  // namespace
}  // namespace autoloco
