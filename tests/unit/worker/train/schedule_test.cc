#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numbers>

#include "worker/train/inner_config.h"

namespace autoloco::worker {
namespace {

ScheduleConfig Cosine() {
  return {
      .schedule = Schedule::kCosine, .learning_rate = 4e-3, .warmup_steps = 50, .total_steps = 600, .final_ratio = 0.1};
}

TEST(LearningRateAtTest, WarmsUpLinearlyToThePeak) {
  EXPECT_DOUBLE_EQ(LearningRateAt(Cosine(), 0), 4e-3 / 50);
  EXPECT_DOUBLE_EQ(LearningRateAt(Cosine(), 24), 4e-3 / 2);
  EXPECT_DOUBLE_EQ(LearningRateAt(Cosine(), 49), 4e-3);
  EXPECT_DOUBLE_EQ(LearningRateAt(Cosine(), 50), 4e-3);
}

TEST(LearningRateAtTest, CosineFallsToTheFinalRatio) {
  EXPECT_NEAR(LearningRateAt(Cosine(), 325), 4e-3 * 0.55, 1e-15);  // half way: the mean of peak and end
  EXPECT_NEAR(LearningRateAt(Cosine(), 600), 4e-4, 1e-15);
  EXPECT_EQ(LearningRateAt(Cosine(), 601), LearningRateAt(Cosine(), 600));
  EXPECT_EQ(LearningRateAt(Cosine(), UINT64_MAX), LearningRateAt(Cosine(), 600));
}

TEST(LearningRateAtTest, IsContinuousEverywhere) {
  const double warmup_slope = 4e-3 / 50;
  const double cosine_slope = 4e-3 * 0.9 / 2 * std::numbers::pi / 550;  // steepest fall of the cosine
  for (std::uint64_t step = 0; step < 700; ++step) {
    const double change = LearningRateAt(Cosine(), step + 1) - LearningRateAt(Cosine(), step);
    EXPECT_LE(change, step < 50 ? warmup_slope * (1 + 1e-9) : 0) << step;
    EXPECT_GE(change, step < 49 ? 0 : -cosine_slope * (1 + 1e-9)) << step;
  }
}

TEST(LearningRateAtTest, WithoutWarmupStartsAtThePeak) {
  ScheduleConfig config = Cosine();
  config.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(LearningRateAt(config, 0), 4e-3);
  EXPECT_LT(LearningRateAt(config, 1), 4e-3);
}

TEST(LearningRateAtTest, ConstantStaysAtThePeak) {
  ScheduleConfig config = Cosine();
  config.schedule = Schedule::kConstant;
  EXPECT_DOUBLE_EQ(LearningRateAt(config, 10), 4e-3 * 11 / 50);
  EXPECT_DOUBLE_EQ(LearningRateAt(config, 50), 4e-3);
  EXPECT_DOUBLE_EQ(LearningRateAt(config, 10000), 4e-3);
}

TEST(LearningRateAtTest, WarmupAsLongAsTheRunOrLonger) {
  ScheduleConfig config = Cosine();
  config.warmup_steps = 600;
  EXPECT_DOUBLE_EQ(LearningRateAt(config, 599), 4e-3);
  EXPECT_DOUBLE_EQ(LearningRateAt(config, 600), 4e-3);
  EXPECT_DOUBLE_EQ(LearningRateAt(config, 5000), 4e-3);
  config.warmup_steps = 1200;
  EXPECT_DOUBLE_EQ(LearningRateAt(config, 600), 4e-3 * 601 / 1200);
  EXPECT_DOUBLE_EQ(LearningRateAt(config, 5000), 4e-3 * 601 / 1200);
}

}  // namespace
}  // namespace autoloco::worker
