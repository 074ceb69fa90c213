// From deliveries to an outer step, from a commit to a record.
#include "server/core/round_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace autoloco::server {
namespace {

OpenRound RoundOf(const std::map<std::string, IntervalReport>& reports) {
  OpenRound round;
  round.number = 7;
  IntervalDecision decision;
  decision.steps = 20;
  decision.interval = 20.25;
  decision.reason = Reason::kAgreement;
  decision.learning_rate = 4e-3;
  round.record = OpenRecord(7, 140, decision);
  for (const auto& [name, report] : reports) {
    RoundEntry& entry = round.entries[name];
    entry.assignment.round = 7;
    entry.delivered = report.inner_steps > 0;
    entry.delivered_by = 3;
    entry.report = report;
  }
  return round;
}

IntervalReport Report(std::uint64_t tokens, double learning_rate_sum, double loss = 2) {
  return {20, tokens, learning_rate_sum, loss, loss + 1, loss - 1, 0.5, 0.25};
}

OuterSettings Bounded() {
  OuterSettings settings;
  settings.correction = OuterCorrection::kBounded;
  settings.reference_learning_rate_sum = 0.08;
  return settings;
}

TEST(RoundControl, EqualWorkOfReferenceLengthIsDiloco) {
  OpenRound round = RoundOf({{"a", Report(100, 0.08)}, {"b", Report(100, 0.08)}, {"c", {}}});
  const CommitPlan plan = PlanCommit(Bounded(), {}, &round);
  ASSERT_EQ(plan.commit.contributions.size(), 2u);
  EXPECT_EQ(plan.commit.round, 7u);
  EXPECT_EQ(plan.commit.contributions[0].push, (PushKey{{"a", 3}, 7, 0}));
  EXPECT_EQ(plan.commit.contributions[0].weight, 0.5);
  EXPECT_EQ(plan.commit.contributions[1].weight, 0.5);
  EXPECT_TRUE(plan.commit.step.factors.plain);
  EXPECT_EQ(plan.commit.step.learning_rate, 0.7);
  EXPECT_TRUE(plan.left_out.empty());
  EXPECT_EQ(round.record.first_inner_step, 140u);
  EXPECT_EQ(round.record.interval, 20.25);
  EXPECT_EQ(round.record.reason, Reason::kAgreement);
  EXPECT_EQ(round.record.assigned, 3u);
  EXPECT_EQ(round.record.contributors, 2u);
  EXPECT_EQ(round.record.worker_steps, 40u);
  EXPECT_EQ(round.record.tokens, 200u);
}

TEST(RoundControl, ShortWorkIsCorrected) {
  OpenRound round = RoundOf({{"a", Report(100, 0.04)}});
  const CommitPlan plan = PlanCommit(Bounded(), {}, &round);
  EXPECT_DOUBLE_EQ(plan.commit.step.ratio, 0.5);
  EXPECT_FALSE(plan.commit.step.factors.plain);
  EXPECT_EQ(plan.commit.step.factors, round.record.factors);
  EXPECT_DOUBLE_EQ(round.record.learning_rate_sum, 0.04);
  OpenRound last = RoundOf({{"a", Report(100, 0.04)}});
  OuterSettings settings = Bounded();
  settings.final_average = true;
  EXPECT_TRUE(PlanCommit(settings, {.last = true}, &last).commit.step.final_average);
  EXPECT_TRUE(last.record.final_average);
}

TEST(RoundControl, WhoDidNothingIsLeftOutAndGivenBack) {
  OpenRound round = RoundOf({{"a", Report(100, 0.08, 2)}, {"b", Report(0, 0.08, 900)}, {"c", Report(100, 0.08, 4)}});
  const CommitPlan plan = PlanCommit(Bounded(), {}, &round);
  ASSERT_EQ(plan.left_out.size(), 1u);
  EXPECT_EQ(plan.left_out[0].worker, "b");
  EXPECT_EQ(plan.left_out[0].push, (PushKey{{"b", 3}, 7, 0}));
  EXPECT_EQ(plan.commit.contributions.size(), 2u);
  EXPECT_EQ(round.record.contributors, 2u);
  EXPECT_EQ(*round.record.loss_mean, 3);
  EXPECT_EQ(*round.record.loss_first, 4);
  EXPECT_EQ(*round.record.loss_last, 2);
  EXPECT_EQ(*round.record.gradient_norm, 0.5);
  EXPECT_EQ(*round.record.step_seconds, 0.25);
}

// Tokens 100 at s = 0 and 100 at s = 1 with lambda 1: shares 2/3 and 1/3; what is older than allowed is left out.
TEST(RoundControl, LateWorkCountsFromItsOwnRoundWithLess) {
  OpenRound round = RoundOf({{"a", Report(100, 0.08)}, {"b", Report(100, 0.08)}, {"c", Report(100, 0.08)}});
  round.entries["b"].assignment.round = 6;
  round.entries["c"].assignment.round = 4;
  const CommitPlan plan = PlanCommit(Bounded(), {.staleness_max = 2, .staleness_discount = 1}, &round);
  ASSERT_EQ(plan.commit.contributions.size(), 2u);
  EXPECT_EQ(plan.commit.contributions[1].push, (PushKey{{"b", 3}, 6, 0}));
  EXPECT_NEAR(plan.commit.contributions[0].weight, 2.0 / 3, 1e-12);
  EXPECT_NEAR(plan.commit.contributions[1].weight, 1.0 / 3, 1e-12);
  ASSERT_EQ(plan.left_out.size(), 1u);
  EXPECT_EQ(plan.left_out[0].push, (PushKey{{"c", 3}, 4, 0}));
}

TEST(RoundControl, AClippedDeltaHasItsShareAndLessWeight) {
  OpenRound round = RoundOf({{"a", Report(100, 0.08)}, {"b", Report(100, 0.08)}});
  round.entries["b"].clip = 0.25;
  const CommitPlan plan = PlanCommit(Bounded(), {}, &round);
  EXPECT_EQ(plan.commit.contributions[0].weight, 0.5);
  EXPECT_EQ(plan.commit.contributions[1].weight, 0.125);
  EXPECT_EQ(round.entries["b"].share, 0.5);
  CommitStats stats;
  stats.parameter_norm = 10;
  stats.delta_norm_by_worker = {{"a", 1}, {"b", 8}};
  FinishRecord(stats, absl::Seconds(1), &round);
  EXPECT_NEAR(*round.record.statistics.delta_power, (1 + 4) / 2.0, 1e-12);  // as it counted
}

TEST(RoundControl, WithEqualVotesTokensDoNotCount) {
  OpenRound round = RoundOf({{"a", Report(100, 0.08)}, {"b", Report(900, 0.04)}, {"c", Report(300, 0.08)}});
  OuterSettings settings = Bounded();
  settings.equal_votes = true;
  PlanCommit(settings, {}, &round);
  for (const auto& [name, entry] : round.entries) EXPECT_NEAR(entry.share, 1.0 / 3, 1e-12) << name;
}

TEST(RoundControl, WhatIsNotFiniteIsUndefined) {
  OpenRound round = RoundOf({{"a", Report(100, 0.08, std::numeric_limits<double>::quiet_NaN())}});
  PlanCommit(Bounded(), {}, &round);
  EXPECT_FALSE(round.record.loss_mean);
  EXPECT_EQ(*round.record.gradient_norm, 0.5);
}

TEST(RoundControl, TheRecordTakesItsStatisticsFromTheCommit) {
  OpenRound round = RoundOf({{"a", Report(100, 0.08)}, {"b", Report(100, 0.08)}, {"c", Report(0, 0.08)}});
  PlanCommit(Bounded(), {}, &round);
  CommitStats stats;
  stats.mean_delta_norm = std::sqrt(5.0);
  stats.momentum_norm = 3;
  stats.parameter_norm = 10;
  stats.delta_norm_by_worker = {{"a", std::sqrt(8.0)}, {"b", std::sqrt(12.0)}};
  FinishRecord(stats, absl::Seconds(9), &round);
  EXPECT_EQ(round.record.seconds, 9);
  EXPECT_EQ(round.record.momentum_norm, 3);
  // P = 10, Q = 5, n = 2.
  EXPECT_NEAR(*round.record.statistics.noise, 10, 1e-12);
  EXPECT_NEAR(*round.record.statistics.common, 0, 1e-12);
  EXPECT_EQ(*round.record.statistics.agreement, kAgreementMin);
  EXPECT_NEAR(*round.record.statistics.path, std::sqrt(10 * 20.0) / 10, 1e-12);
}

}  // namespace
}  // namespace autoloco::server
