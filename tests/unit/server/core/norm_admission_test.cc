// Deltas whose norm fits the run, and those whose norm does not.
#include "server/core/norm_admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace autoloco::server {
namespace {

using ::testing::HasSubstr;

constexpr double kSum = 0.4;  // of a usual interval

RoundRecord Round(double velocity_norm, double sum = kSum) {
  RoundRecord record;
  record.learning_rate_sum = sum;
  record.statistics.delta_power = velocity_norm * velocity_norm * sum * sum;
  return record;
}

std::vector<RoundRecord> History(std::size_t rounds, double velocity_norm) {
  return std::vector<RoundRecord>(rounds, Round(velocity_norm));
}

NormInput Delta(double velocity_norm, double sum = kSum) { return {velocity_norm * sum, sum, kSum, 1'000'000}; }

TEST(NormAdmissionTest, UsualDeltasPass) {
  const NormVerdict verdict = JudgeNorm({}, History(20, 3), Delta(14.9));
  EXPECT_TRUE(verdict.admitted);
  EXPECT_EQ(verdict.scale, 1);
  EXPECT_EQ(verdict.text, "");
}

TEST(NormAdmissionTest, OutliersAreRefusedWithTheNumbers) {
  const NormVerdict verdict = JudgeNorm({}, History(20, 3), Delta(15.5));
  EXPECT_FALSE(verdict.admitted);
  EXPECT_THAT(verdict.text, HasSubstr("15.5"));
  EXPECT_THAT(verdict.text, HasSubstr("limit 15 (5 x the median 3 of 20 rounds)"));
}

TEST(NormAdmissionTest, TheMedianLooksAtTheLastRoundsOnly) {
  std::vector<RoundRecord> history = History(100, 1000);
  for (int i = 0; i < 20; ++i) history.push_back(Round(1));
  EXPECT_FALSE(JudgeNorm({}, history, Delta(6)).admitted);
  // One wild round among the last does not widen the limit.
  history.push_back(Round(500));
  EXPECT_FALSE(JudgeNorm({}, history, Delta(6)).admitted);
}

TEST(NormAdmissionTest, RoundsWithoutANumberAreLeftOut) {
  std::vector<RoundRecord> history = History(4, 1);
  history.push_back(RoundRecord());
  history.push_back(Round(std::numeric_limits<double>::quiet_NaN()));
  history.push_back(Round(1, 0));
  EXPECT_TRUE(JudgeNorm({}, history, Delta(50)).admitted);  // four usable rounds: too few
  history.push_back(Round(1));
  EXPECT_FALSE(JudgeNorm({}, history, Delta(50)).admitted);
}

TEST(NormAdmissionTest, BeforeThereIsHistoryOnlyTheImpossibleIsRefused) {
  EXPECT_TRUE(JudgeNorm({}, {}, Delta(1000)).admitted);
  EXPECT_TRUE(JudgeNorm({}, {}, Delta(0.99 * kSaneVelocity * 1000)).admitted);
  const NormVerdict verdict = JudgeNorm({}, {}, Delta(1.01 * kSaneVelocity * 1000));
  EXPECT_FALSE(verdict.admitted);
  EXPECT_THAT(verdict.text, HasSubstr("beyond what training can give"));
  EXPECT_FALSE(JudgeNorm({}, {}, {1e38, kSum, kSum, 1'000'000}).admitted);
  EXPECT_FALSE(JudgeNorm({}, {}, {1e38, 0, kSum, 1'000'000}).admitted);  // whatever it says of its learning rates
  EXPECT_FALSE(JudgeNorm({}, {}, {std::numeric_limits<double>::infinity(), kSum, kSum, 1'000'000}).admitted);
}

// Noise grows with the root of the length: a sixteenth of the interval may have four times the velocity norm.
TEST(NormAdmissionTest, ShortIntervalsMayBeNoisier) {
  EXPECT_TRUE(JudgeNorm({}, History(20, 3), Delta(59, kSum / 16)).admitted);
  EXPECT_FALSE(JudgeNorm({}, History(20, 3), Delta(61, kSum / 16)).admitted);
  EXPECT_FALSE(JudgeNorm({}, History(20, 3), Delta(16, kSum * 16)).admitted);
}

TEST(NormAdmissionTest, ClippingScalesDownToTheLimit) {
  NormSettings settings;
  settings.clip = true;
  const NormVerdict verdict = JudgeNorm(settings, History(20, 3), Delta(60));
  EXPECT_TRUE(verdict.admitted);
  EXPECT_NEAR(verdict.scale, 0.25, 1e-12);
  EXPECT_THAT(verdict.text, HasSubstr("it counts 0.25 times"));
  EXPECT_EQ(JudgeNorm(settings, History(20, 3), Delta(15)).scale, 1);
  EXPECT_FALSE(JudgeNorm(settings, History(20, 3), {1e38, kSum, kSum, 1'000'000}).admitted);  // not even clipped
}

TEST(NormAdmissionTest, WithoutALimitOnlyTheAbsoluteRuleHolds) {
  NormSettings settings;
  settings.limit = 0;
  EXPECT_TRUE(JudgeNorm(settings, History(20, 3), Delta(1000)).admitted);
  EXPECT_FALSE(JudgeNorm(settings, History(20, 3), {1e38, kSum, kSum, 1'000'000}).admitted);
}

}  // namespace
}  // namespace autoloco::server
