// The interval policy and the outer correction at work within the round machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "server/core/interval_policy.h"
#include "server/core/round_machine.h"
#include "tests/support/core_script.h"

namespace autoloco::server {
namespace {

// 400 steps of cosine from 0.01 to 0.001, H_ref 5, three calibration rounds, checkpoints after every round.
CoreConfig AutolocoConfig() {
  CoreConfig config = SmallConfig();
  config.evaluation_windows = 0;
  config.min_workers = 2;
  config.checkpoint_every_rounds = 1;
  config.tokens_per_sample = 10;
  config.interval.policy = IntervalPolicy::kAutoloco;
  config.interval.total_inner_steps = 400;
  config.interval.calibration_rounds = 3;
  config.interval.spike_guard = true;
  config.interval.schedule = {.schedule = Schedule::kCosine,
                              .learning_rate = 0.01,
                              .warmup_steps = 10,
                              .total_steps = 400,
                              .final_ratio = 0.1};
  config.outer.correction = OuterCorrection::kBounded;
  config.outer.reference_learning_rate_sum = 0.05;
  config.outer.final_average = true;
  return config;
}

// What the workers of `round` report and the commit sees: made up, the same whoever asks.
class World {
 public:
  explicit World(const CoreConfig& config) : config_(config) {}

  void Prepare(const Assignment& assignment, IntervalReport* report) const {
    const RandomStream random(3, assignment.round);
    report->tokens = 10 * assignment.inner_steps;
    report->learning_rate_sum = 0;
    for (std::uint32_t i = 0; i < assignment.inner_steps; ++i) {
      report->learning_rate_sum += LearningRateAt(config_.interval.schedule, assignment.first_inner_step + i);
    }
    report->loss_first = report->loss_mean = 2 + 0.01 * random.Uniform(0) + (assignment.round == spike_ ? 3 : 0);
  }
  CommitStats Stats(Round round) const {
    const RandomStream random(4, round);
    CommitStats stats;
    stats.delta_norm_by_worker = {{"a", 1 + 0.1 * random.Uniform(0)}, {"b", 1 + 0.1 * random.Uniform(1)}};
    stats.mean_delta_norm = 0.75 + 0.2 * random.Uniform(2);
    stats.parameter_norm = 10;
    return stats;
  }

 private:
  const CoreConfig config_;
  const Round spike_ = 20;
};

struct Played {
  std::vector<Assignment> assignments;
  std::vector<OuterStep> steps;
  std::vector<CoreSnapshot> snapshots;  // after each round but the last
  std::vector<RoundRecord> history;
  std::vector<Reason> reasons;  // of the decisions
};

// Plays from `snapshot` until the run is over, or until `rounds` more rounds are committed.
Played Play(const CoreConfig& config, const CoreSnapshot& snapshot, std::optional<int> rounds = std::nullopt) {
  const World world(config);
  CoreScript script(config, snapshot);
  script.Join("a");
  script.Join("b");
  Played played;
  for (int i = 0; script.Status().phase == RunPhase::kTraining && (!rounds || i < *rounds); ++i) {
    const Assignment assignment = script.AssignmentOf("a");
    played.assignments.push_back(assignment);
    world.Prepare(assignment, &script.report());
    script.Push("a", std::to_string(assignment.round));
    script.Push("b", std::to_string(assignment.round));
    played.steps.push_back(script.Last<StartCommit>()->step);
    script.Commit(world.Stats(assignment.round));
    if (const auto checkpoint = script.Last<StartCheckpoint>()) played.snapshots.push_back(checkpoint->snapshot);
    script.Checkpoint();
  }
  played.history = script.machine().History();
  for (const Decision& decision : script.All<Decision>()) {
    if (decision.kind == DecisionKind::kInterval) played.reasons.push_back(decision.reason);
  }
  return played;
}

TEST(RoundMachineIntervals, TheIntervalGrowsAsTheLearningRateFallsWithAReasonARound) {
  const CoreConfig config = AutolocoConfig();
  const Played played = Play(config, {});
  ASSERT_EQ(played.history.size(), played.assignments.size());
  EXPECT_LT(played.history.size(), 65u);  // 80 of length 5
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < played.history.size(); ++i) {
    EXPECT_EQ(played.history[i].round, i);
    EXPECT_EQ(played.history[i].first_inner_step, done);
    EXPECT_EQ(played.history[i].inner_steps, played.assignments[i].inner_steps);
    EXPECT_EQ(played.history[i].reason, played.reasons[i]);
    EXPECT_EQ(played.history[i].contributors, 2u);
    EXPECT_TRUE(played.history[i].statistics.agreement.has_value());
    done += played.history[i].inner_steps;
  }
  EXPECT_EQ(done, 400u);
  EXPECT_EQ(played.reasons.front(), Reason::kWarmup);
  EXPECT_EQ(played.reasons.back(), Reason::kLastInterval);
  EXPECT_GT(played.history[played.history.size() - 2].inner_steps, 15u);
}

TEST(RoundMachineIntervals, DecisionsAreThoseOfThePurePolicyReplayedFromTheHistory) {
  const CoreConfig config = AutolocoConfig();
  const std::vector<RoundRecord> history = Play(config, {}).history;
  const std::vector<IntervalDecision> decisions = ReplayDecisions(config.interval, history);
  ASSERT_EQ(decisions.size(), history.size());
  for (std::size_t i = 0; i < history.size(); ++i) {
    EXPECT_EQ(decisions[i].steps, history[i].inner_steps) << i;
    EXPECT_EQ(decisions[i].interval, history[i].interval) << i;
    EXPECT_EQ(decisions[i].reason, history[i].reason) << i;
  }
}

TEST(RoundMachineIntervals, ARestartAfterAnyRoundGoesOnAlike) {
  const CoreConfig config = AutolocoConfig();
  const Played whole = Play(config, {});
  ASSERT_EQ(whole.snapshots.size(), whole.history.size());
  for (std::size_t i = 0; i + 1 < whole.snapshots.size(); i += 3) {
    ASSERT_EQ(whole.snapshots[i].version, i + 1);
    const Played rest = Play(config, whole.snapshots[i]);
    ASSERT_EQ(rest.assignments.size(), whole.assignments.size() - i - 1);
    for (std::size_t k = 0; k < rest.assignments.size(); ++k) {
      EXPECT_EQ(rest.assignments[k], whole.assignments[i + 1 + k]);
      EXPECT_EQ(rest.steps[k].factors, whole.steps[i + 1 + k].factors);
    }
    ASSERT_EQ(rest.history.size(), whole.history.size());
    for (std::size_t k = 0; k < rest.history.size(); ++k) {
      RoundRecord want = whole.history[k];
      want.seconds = rest.history[k].seconds;
      EXPECT_EQ(rest.history[k], want);
    }
  }
}

TEST(RoundMachineIntervals, ASpikeHalvesTheNextIntervalAndItsMomentum) {
  const CoreConfig config = AutolocoConfig();
  const Played played = Play(config, {});
  EXPECT_EQ(std::count(played.reasons.begin(), played.reasons.end(), Reason::kSpike), 1);
  EXPECT_EQ(played.history[21].reason, Reason::kSpike);
  EXPECT_EQ(played.history[21].momentum_scale, 0.5);
  EXPECT_NEAR(played.history[21].interval, played.history[20].interval / 2, 0.3);
  const OuterStep& step = played.steps[21];
  const OuterFactors want = OuterFactorsFor(OuterCorrection::kBounded, {0.9}, step.ratio);
  EXPECT_FALSE(step.factors.plain);
  EXPECT_DOUBLE_EQ(step.factors.c, want.c / 2);
  EXPECT_DOUBLE_EQ(step.factors.p, want.p / 2);
  EXPECT_EQ(step.factors.a, want.a);
  EXPECT_EQ(step.factors.g, want.g);
}

TEST(RoundMachineIntervals, TheLastStepIsThePlainAverage) {
  const Played played = Play(AutolocoConfig(), {});
  for (std::size_t i = 0; i < played.steps.size(); ++i) {
    const bool last = i + 1 == played.steps.size();
    EXPECT_EQ(played.steps[i].final_average, last);
    EXPECT_EQ(played.steps[i].learning_rate, last ? 1 : 0.7);
  }
}

TEST(RoundMachineIntervals, FixedIsPlainDilocoWhateverTheLearningRateDoes) {
  CoreConfig config = AutolocoConfig();
  config.interval.policy = IntervalPolicy::kFixed;
  config.interval.spike_guard = false;
  config.outer.correction = OuterCorrection::kNone;
  config.outer.final_average = false;
  const Played played = Play(config, {});
  EXPECT_EQ(played.history.size(), 80u);
  for (const OuterStep& step : played.steps) {
    EXPECT_TRUE(step.factors.plain);
    EXPECT_EQ(step.learning_rate, 0.7);
  }
}

TEST(RoundMachineIntervals, AnAbortedRoundIsDecidedAlikeAgain) {
  const CoreConfig config = AutolocoConfig();
  const CoreSnapshot snapshot = Play(config, {}, 25).snapshots.back();
  CoreScript script(config, snapshot);
  script.Join("a");
  script.Join("b");
  const Assignment first = script.AssignmentOf("a");
  script.RunTimers(absl::Seconds(20));  // both leases expire
  EXPECT_EQ(script.Decided(Reason::kAborted), 1);
  script.Join("a");
  script.Join("b");
  EXPECT_EQ(script.AssignmentOf("a"), first);
  EXPECT_EQ(script.machine().History().size(), 25u);
}

TEST(RoundMachineIntervals, ADeltaWithoutWorkIsLeftOutAndDropped) {
  CoreScript script;
  script.Join("a");
  script.Join("b");
  script.report() = {.tokens = 10, .learning_rate_sum = 0.05};
  script.Push("a");
  script.report() = {.tokens = 10, .learning_rate_sum = 0.0001};
  script.Push("b");
  ASSERT_EQ(script.Last<StartCommit>()->contributions.size(), 1u);
  EXPECT_EQ(script.Last<StartCommit>()->contributions[0].weight, 1);
  EXPECT_EQ(script.Decided(Reason::kLeftOut), 1);
  ASSERT_TRUE(script.Last<DropSpooled>().has_value());
  EXPECT_EQ(script.Last<DropSpooled>()->push, (PushKey{script.SenderOf("b").worker, 0, 0}));
  script.Commit();
  EXPECT_EQ(script.Last<RoundCommitted>()->applied, 1u);
  EXPECT_EQ(script.Status().applied, 1u);
}

TEST(RoundMachineIntervals, StatusSaysWhyTheIntervalIsThatLong) {
  CoreScript script;
  EXPECT_EQ(script.Status().interval_reason, "");
  script.Join("a");
  script.Join("b");
  EXPECT_EQ(script.Status().interval_reason, "fixed: 5 steps");
}

}  // namespace
}  // namespace autoloco::server
