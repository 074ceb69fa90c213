#include "worker/runtime/interval_statistics.h"

#include <gtest/gtest.h>

namespace autoloco::worker {
namespace {

// Step i, counted from 0: loss 10 - i, gradient norm i, learning rate 0.1 (i + 1), 8 tokens, (i + 1) ms.
IntervalReport ReportOf(std::uint32_t planned, std::uint32_t steps) {
  IntervalStatistics statistics(planned);
  for (std::uint32_t i = 0; i < steps; ++i) {
    statistics.Add({.loss = 10.0 - i,
                    .gradient_norm = 1.0 * i,
                    .learning_rate = 0.1 * (i + 1),
                    .tokens = 8,
                    .duration = absl::Milliseconds(i + 1)});
  }
  return statistics.Report();
}

TEST(IntervalStatisticsTest, SumsAndMeans) {
  const IntervalReport report = ReportOf(8, 8);
  EXPECT_EQ(report.inner_steps, 8u);
  EXPECT_EQ(report.tokens, 64u);
  EXPECT_DOUBLE_EQ(report.learning_rate_sum, 3.6);
  EXPECT_DOUBLE_EQ(report.loss_mean, 6.5);
  EXPECT_DOUBLE_EQ(report.gradient_norm_mean, 3.5);
  EXPECT_DOUBLE_EQ(report.step_seconds_mean, 0.0045);
}

TEST(IntervalStatisticsTest, FirstAndLastAreAQuarterOfTheInterval) {
  const IntervalReport report = ReportOf(8, 8);
  EXPECT_DOUBLE_EQ(report.loss_first, 9.5);  // of 10 and 9
  EXPECT_DOUBLE_EQ(report.loss_last, 3.5);   // of 4 and 3
}

TEST(IntervalStatisticsTest, FirstAndLastAreAtMostSixteenSteps) {
  const IntervalReport report = ReportOf(100, 100);
  EXPECT_DOUBLE_EQ(report.loss_first, 10 - 7.5);
  EXPECT_DOUBLE_EQ(report.loss_last, 10 - 91.5);
}

TEST(IntervalStatisticsTest, FirstAndLastAreAtLeastOneStep) {
  const IntervalReport report = ReportOf(3, 3);
  EXPECT_DOUBLE_EQ(report.loss_first, 10);
  EXPECT_DOUBLE_EQ(report.loss_last, 8);
  const IntervalReport single = ReportOf(1, 1);
  EXPECT_DOUBLE_EQ(single.loss_first, 10);
  EXPECT_DOUBLE_EQ(single.loss_last, 10);
}

}  // namespace
}  // namespace autoloco::worker
