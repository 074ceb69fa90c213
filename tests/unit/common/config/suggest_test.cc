#include "common/config/suggest.h"

#include <gtest/gtest.h>

namespace autoloco {
namespace {

const std::vector<std::string> kNames = {"learning_rate", "momentum", "nesterov", "seed"};

TEST(SuggestTest, FindsTypingErrors) {
  EXPECT_EQ(NearestName("lerning_rate", kNames), "learning_rate");
  EXPECT_EQ(NearestName("learning-rate", kNames), "learning_rate");
  EXPECT_EQ(NearestName("LEARNING_RATE", kNames), "learning_rate");
  EXPECT_EQ(NearestName("momentmu", kNames), "momentum");
  EXPECT_EQ(NearestName("sed", kNames), "seed");
  EXPECT_EQ(NearestName("sede", kNames), "seed");
}

TEST(SuggestTest, SaysNothingWhenNothingIsNear) {
  EXPECT_EQ(NearestName("xyz", kNames), "");
  EXPECT_EQ(NearestName("", kNames), "");
  EXPECT_EQ(NearestName("momentum_of_the_outer_step", kNames), "");
  EXPECT_EQ(NearestName(std::string(100000, 'a'), kNames), "");
  EXPECT_EQ(NearestName("seed", {}), "");
}

TEST(SuggestTest, TakesTheNearerOfTwo) {
  EXPECT_EQ(NearestName("min_worker", {"max_workers", "min_workers"}), "min_workers");
}

}  // namespace
}  // namespace autoloco
