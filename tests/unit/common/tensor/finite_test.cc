#include "common/tensor/finite.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace autoloco {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(FiniteTest, ExtremesAreFinite) {
  const std::vector<float> values = {0.0f, -0.0f, std::numeric_limits<float>::max(),
                                     std::numeric_limits<float>::lowest(), std::numeric_limits<float>::denorm_min()};
  EXPECT_TRUE(AllFinite(values));
  EXPECT_TRUE(AllFinite({}));
}

TEST(FiniteTest, FindsABadValueWhereverItIs) {
  for (std::size_t size = 1; size < 70; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      for (const float bad : {kInfinity, -kInfinity, std::nanf(""), -std::nanf("1")}) {
        std::vector<float> values(size, 1.0f);
        values[at] = bad;
        ASSERT_FALSE(AllFinite(values)) << at << " of " << size;
      }
    }
  }
}

TEST(FiniteTest, NamesTheFirstBadValue) {
  const Layout layout = Layout::Make({{"a", {4}}, {"b", {2, 5}}}).value();
  std::vector<float> values(14, 0.0f);
  EXPECT_TRUE(CheckFinite(values, layout, 0).ok());
  values[11] = kInfinity;
  values[6] = std::nanf("");
  EXPECT_EQ(CheckFinite(values, layout, 0), absl::InvalidArgumentError("tensor b: value 2 is nan"));
  values[6] = 0.0f;
  EXPECT_EQ(CheckFinite(values, layout, 0), absl::InvalidArgumentError("tensor b: value 7 is inf"));
  // A slice that starts at value 9 of the flat vector.
  EXPECT_EQ(CheckFinite(std::span(values).subspan(9), layout, 9),
            absl::InvalidArgumentError("tensor b: value 7 is inf"));
  EXPECT_TRUE(CheckFinite(std::span(values).subspan(12), layout, 12).ok());
  EXPECT_TRUE(CheckFinite({}, layout, 14).ok());
}

}  // namespace
}  // namespace autoloco
