// The interval policies: made-up runs, whose rounds say what a test wants them to say.
#include "server/core/interval_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "common/base/random.h"

namespace autoloco::server {
namespace {

constexpr IntervalPolicy kMeasured[] = {IntervalPolicy::kAutoloco, IntervalPolicy::kPath, IntervalPolicy::kDispersion,
                                        IntervalPolicy::kAdacomm};

// 4,000 steps at a constant rate, H_ref 20, no warm-up.
IntervalConfig Config(IntervalPolicy policy) {
  IntervalConfig config;
  config.policy = policy;
  config.steps = 20;
  config.steps_min = 10;
  config.steps_max = 160;
  config.total_inner_steps = 4000;
  config.schedule = {.schedule = Schedule::kConstant, .learning_rate = 4e-3, .total_steps = 4000};
  return config;
}

// The reference run of the measurements: warm-up 200, cosine to 10 %.
IntervalConfig Cosine(IntervalPolicy policy) {
  IntervalConfig config = Config(policy);
  config.schedule.schedule = Schedule::kCosine;
  config.schedule.warmup_steps = 200;
  config.schedule.final_ratio = 0.1;
  return config;
}

// Fills in what a round measured; the decision is there already.
using World = std::function<void(RoundRecord*)>;

void Calm(RoundRecord* record) {
  record->statistics.agreement = 0.3;
  record->statistics.path = 0.05;
  record->statistics.noise = 2.0 * record->inner_steps;
  record->loss_mean = record->loss_first = 2;
  record->mean_delta_norm = 3 * record->learning_rate_sum;
}

RoundRecord Play(const IntervalConfig& config, const World& world, std::uint64_t done, const IntervalState& state) {
  const IntervalDecision decision = DecideInterval(config, state, done);
  RoundRecord record;
  record.round = static_cast<Round>(state.rounds);
  record.first_inner_step = done;
  record.inner_steps = decision.steps;
  record.interval = decision.interval;
  record.reason = decision.reason;
  record.learning_rate = decision.learning_rate;
  record.momentum_scale = decision.momentum_scale;
  for (std::uint32_t i = 0; i < decision.steps; ++i)
    record.learning_rate_sum += LearningRateAt(config.schedule, done + i);
  world(&record);
  return record;
}

std::vector<RoundRecord> RunOf(const IntervalConfig& config, const World& world = Calm) {
  std::vector<RoundRecord> history;
  IntervalState state;
  for (std::uint64_t done = 0; done < config.total_inner_steps; done += history.back().inner_steps) {
    history.push_back(Play(config, world, done, state));
    ObserveRound(config, history.back(), &state);
  }
  return history;
}

std::vector<std::uint32_t> Steps(const std::vector<RoundRecord>& history) {
  std::vector<std::uint32_t> steps;
  for (const RoundRecord& record : history) steps.push_back(record.inner_steps);
  return steps;
}

int Count(const std::vector<RoundRecord>& history, Reason reason) {
  return static_cast<int>(std::count_if(history.begin(), history.end(),
                                        [reason](const RoundRecord& record) { return record.reason == reason; }));
}

// A world that differs from Calm in every number that is measured, from one round on, and whatever H is.
World StepUpAt(Round round, double strength) {
  return [round, strength](RoundRecord* record) {
    Calm(record);
    if (record->round < round) return;
    record->statistics.agreement = 0.3 / (0.3 + 0.7 * strength);
    record->statistics.path = 0.05 / strength;
    record->statistics.noise = 2.0 * record->inner_steps / strength;
    record->loss_mean = 2 * strength;
  };
}

TEST(IntervalPolicy, FixedIsTheReferenceCutAtTheEnd) {
  IntervalConfig config = Config(IntervalPolicy::kFixed);
  config.total_inner_steps = 50;
  const std::vector<RoundRecord> history = RunOf(config, StepUpAt(1, 9));
  EXPECT_THAT(Steps(history), testing::ElementsAre(20, 20, 10));
  EXPECT_EQ(history[1].reason, Reason::kFixed);
  EXPECT_EQ(history[2].reason, Reason::kLastInterval);
  EXPECT_EQ(history[2].interval, 20);
}

TEST(IntervalPolicy, ConstantInputGivesAConstantInterval) {
  for (const IntervalPolicy policy : kMeasured) {
    const std::vector<RoundRecord> history = RunOf(Config(policy));
    EXPECT_EQ(history.size(), 200u) << IntervalPolicyName(policy);
    EXPECT_THAT(Steps(history), testing::Each(20u)) << IntervalPolicyName(policy);
  }
}

TEST(IntervalPolicy, AStepInTheInputIsApproachedMonotonelyWithinTheRateLimit) {
  for (const IntervalPolicy policy : kMeasured) {
    for (const double strength : {20.0, 1 / 20.0}) {
      const std::vector<RoundRecord> history = RunOf(Config(policy), StepUpAt(20, strength));
      const bool up = strength > 1;
      for (std::size_t i = 1; i < history.size(); ++i) {
        const double change = history[i].interval / history[i - 1].interval;
        if (up) {
          EXPECT_GE(change, 1) << IntervalPolicyName(policy) << " " << i;
          EXPECT_LE(change, 1.25 + 1e-12) << IntervalPolicyName(policy) << " " << i;
        } else {
          EXPECT_LE(change, 1) << IntervalPolicyName(policy) << " " << i;
          EXPECT_GE(change, 0.8 - 1e-12) << IntervalPolicyName(policy) << " " << i;
        }
      }
      EXPECT_EQ(history[20].interval, 20) << IntervalPolicyName(policy);
      const double end = history[history.size() - 2].interval;
      EXPECT_GE(end, 10);
      EXPECT_LE(end, 160);
      if (up) {
        EXPECT_GT(end, 35) << IntervalPolicyName(policy);
      } else {
        EXPECT_LT(end, 11) << IntervalPolicyName(policy);
      }
    }
  }
}

TEST(IntervalPolicy, AutolocoGoesNoFurtherThanItsFactorLets) {
  const std::vector<RoundRecord> up = RunOf(Config(IntervalPolicy::kAutoloco), StepUpAt(20, 1e6));
  EXPECT_NEAR(up[60].interval, 40, 0.03 * 40);  // twice, but for the dead band
  // ln 20 = 3.0 of disagreement, to the power 0.33.
  const std::vector<RoundRecord> some = RunOf(Config(IntervalPolicy::kAutoloco), StepUpAt(20, 3));
  EXPECT_NEAR(some[80].interval, 20 * std::pow(3, 0.33), 0.03 * 30);
}

TEST(IntervalPolicy, SmallChangesAreNotMade) {
  const std::vector<RoundRecord> history = RunOf(Config(IntervalPolicy::kAutoloco), StepUpAt(20, 1.08));
  EXPECT_THAT(Steps(history), testing::Each(20u));  // 1.08^0.33 = 1.026
}

TEST(IntervalPolicy, MissingNumbersHold) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  for (const IntervalPolicy policy : kMeasured) {
    for (const std::optional<double> odd : {std::optional<double>(), std::optional<double>(nan),
                                            std::optional<double>(infinite), std::optional<double>(0)}) {
      const World world = [&](RoundRecord* record) {
        StepUpAt(15, 3)(record);
        if (record->round < 40) return;
        record->statistics.agreement = odd == 0.0 ? -1 : odd;  // an agreement of 0 is a number
        record->statistics.path = record->statistics.noise = odd;
        record->loss_mean = record->loss_first = odd;
        record->mean_delta_norm = odd.value_or(nan);
      };
      IntervalConfig config = Config(policy);
      config.spike_guard = true;
      const std::vector<RoundRecord> history = RunOf(config, world);
      for (std::size_t i = 41; i < history.size(); ++i) {
        ASSERT_EQ(history[i].interval, history[40].interval) << IntervalPolicyName(policy) << " " << i;
      }
      EXPECT_GT(Count(history, Reason::kHeld), 1) << IntervalPolicyName(policy);
    }
  }
}

TEST(IntervalPolicy, WithoutAnyMeasurementTheScheduleGoesOn) {
  const World single_worker = [](RoundRecord* record) { Calm(record), record->statistics = {}; };
  IntervalConfig config = Cosine(IntervalPolicy::kAutoloco);
  const std::vector<RoundRecord> alone = RunOf(config, single_worker);
  EXPECT_EQ(Steps(alone), Steps(RunOf(config, Calm)));
  config.agreement_power = 0;
  EXPECT_EQ(Steps(alone), Steps(RunOf(config, StepUpAt(20, 5))));
}

TEST(IntervalPolicy, AutolocoHoldsTheAccumulatedLearningRate) {
  const std::vector<RoundRecord> history = RunOf(Cosine(IntervalPolicy::kAutoloco));
  // The measured runs had 113 rounds of 200.
  EXPECT_NEAR(static_cast<double>(history.size()), 113, 4);
  const double reference = 20 * 4e-3;
  for (std::size_t i = 16; i + 1 < history.size(); ++i) {
    if (history[i].reason == Reason::kMaximum) continue;
    EXPECT_NEAR(history[i].learning_rate_sum, reference, 0.1 * reference) << i;
  }
  EXPECT_EQ(history[0].reason, Reason::kWarmup);
  EXPECT_EQ(history[10].reason, Reason::kCalibration);
  EXPECT_EQ(history[14].reason, Reason::kCalibration);
  EXPECT_EQ(history[15].reason, Reason::kLearningRate);
  EXPECT_EQ(history.back().reason, Reason::kLastInterval);

  IntervalConfig careful = Cosine(IntervalPolicy::kAutoloco);
  careful.learning_rate_power = 0.75;
  EXPECT_NEAR(static_cast<double>(RunOf(careful).size()), 128, 4);
}

TEST(IntervalPolicy, QsrGrowsWithTheSquareUpToTheLimit) {
  const std::vector<RoundRecord> history = RunOf(Cosine(IntervalPolicy::kQsr));
  EXPECT_GT(Count(history, Reason::kMaximum), 1);
  for (const RoundRecord& record : history) {
    if (record.reason != Reason::kLearningRate) continue;
    EXPECT_DOUBLE_EQ(record.interval, 20 * std::pow(4e-3 / record.learning_rate, 2));
  }
  IntervalConfig config = Cosine(IntervalPolicy::kQsr);
  config.schedule.final_ratio = 0;  // the rate goes to zero, the interval to the limit
  EXPECT_THAT(Steps(RunOf(config)), testing::Each(testing::Le(160u)));
}

TEST(IntervalPolicy, AdacommFollowsTheLossAndTheLearningRate) {
  const World falling = [](RoundRecord* record) {
    Calm(record);
    record->loss_mean = record->round < 20 ? 2 : 1;
  };
  const std::vector<RoundRecord> history = RunOf(Config(IntervalPolicy::kAdacomm), falling);
  EXPECT_EQ(history.at(60).inner_steps, static_cast<std::uint32_t>(std::ceil(20 * std::sqrt(0.5))));
}

TEST(IntervalPolicy, TheBudgetHitsTheNumberOfRounds) {
  for (const IntervalPolicy policy : {IntervalPolicy::kFixed, IntervalPolicy::kAutoloco, IntervalPolicy::kPath}) {
    for (const std::uint64_t target : {80, 113, 150, 250}) {
      IntervalConfig config = Cosine(policy);
      config.target_rounds = target;
      const std::vector<RoundRecord> history = RunOf(config);
      EXPECT_NEAR(static_cast<double>(history.size()), static_cast<double>(target), 0.04 * target)
          << IntervalPolicyName(policy);
    }
  }
}

TEST(IntervalPolicy, RandomHasTheGivenNumberOfRounds) {
  for (const std::uint64_t rounds : {60, 113, 200}) {
    IntervalConfig config = Config(IntervalPolicy::kRandom);
    config.target_rounds = rounds;
    std::vector<std::uint32_t> steps = Steps(RunOf(config));
    EXPECT_EQ(steps.size(), rounds);
    EXPECT_EQ(std::accumulate(steps.begin(), steps.end(), 0u), 4000u);
    EXPECT_FALSE(std::is_sorted(steps.begin(), steps.end()));
    config.seed = 2;
    std::vector<std::uint32_t> other = Steps(RunOf(config));
    EXPECT_NE(other, steps);
    std::sort(steps.begin(), steps.end());
    std::sort(other.begin(), other.end());
    EXPECT_EQ(other, steps);
    EXPECT_GE(steps.front(), 10u);
    EXPECT_LE(steps.back(), 160u);
    EXPECT_GT(steps.back(), 2 * steps.front());
  }
}

TEST(IntervalPolicy, ReplayGivesTheListAndStaysAtItsEnd) {
  IntervalConfig config = Config(IntervalPolicy::kReplay);
  config.total_inner_steps = 100;
  config.replay = {7, 300, 12};  // no limits: the list is what was asked for
  EXPECT_THAT(Steps(RunOf(config)), testing::ElementsAre(7, 93));
  config.replay = {7, 30, 12};
  EXPECT_THAT(Steps(RunOf(config)), testing::ElementsAre(7, 30, 12, 12, 12, 12, 12, 3));
}

// Losses that move a little, as real ones do.
void Noisy(RoundRecord* record) {
  Calm(record);
  const double noise = RandomStream(5, 5).Normal(record->round);
  record->loss_first = 2 + 0.02 * noise;
  record->mean_delta_norm *= 1 + 0.05 * noise;
}

TEST(SpikeGuard, ALossSpikeHalvesOnceThenHoldsThenReturns) {
  IntervalConfig config = Config(IntervalPolicy::kAutoloco);
  config.spike_guard = true;
  const World world = [](RoundRecord* record) {
    Noisy(record);
    if (record->round >= 30 && record->round < 33) record->loss_first = 3;  // one spike of three rounds
  };
  const std::vector<RoundRecord> history = RunOf(config, world);
  EXPECT_EQ(Count(history, Reason::kSpike), 1);
  EXPECT_EQ(history[30].reason, Reason::kLearningRate);
  EXPECT_EQ(history[31].reason, Reason::kSpike);
  EXPECT_EQ(history[31].momentum_scale, 0.5);
  EXPECT_EQ(history[32].momentum_scale, 1);
  const std::vector<std::uint32_t> steps = Steps(history);
  EXPECT_THAT(std::vector<std::uint32_t>(steps.begin() + 30, steps.begin() + 40),
              testing::ElementsAre(20, 10, 10, 10, 10, 13, 16, 20, 20, 20));
}

TEST(SpikeGuard, ADeltaSpikeFiresAndGrowingDeltasDoNot) {
  IntervalConfig config = Cosine(IntervalPolicy::kAutoloco);  // |D| grows tenfold within the warm-up
  config.spike_guard = true;
  EXPECT_EQ(Count(RunOf(config, Noisy), Reason::kSpike), 0);
  const World world = [](RoundRecord* record) {
    Noisy(record);
    if (record->round == 30 || record->round == 50) record->mean_delta_norm *= 4;
  };
  EXPECT_EQ(Count(RunOf(config, world), Reason::kSpike), 2);
  config.spike_guard = false;
  EXPECT_EQ(Count(RunOf(config, world), Reason::kSpike), 0);
}

TEST(SpikeGuard, EqualLossesAreNoSpike) {
  IntervalConfig config = Config(IntervalPolicy::kAutoloco);
  config.spike_guard = true;
  const World world = [](RoundRecord* record) {
    Calm(record);
    record->loss_first = 0.1 + 0.2;
  };
  EXPECT_EQ(Count(RunOf(config, world), Reason::kSpike), 0);
}

// A world in which everything moves, deterministically.
void Lively(RoundRecord* record) {
  const RandomStream random(11, 3);
  const auto draw = [&](std::uint64_t what) { return random.Uniform(8 * record->round + what); };
  record->statistics.agreement = 0.1 + 0.6 * draw(0);
  record->statistics.path = 0.02 + 0.05 * draw(1);
  record->statistics.noise = record->inner_steps * (1 + draw(2));
  record->loss_mean = 2 + 0.1 * draw(3);
  record->loss_first = 2 + 0.1 * draw(4) + (draw(5) > 0.96 ? 1 : 0);
  record->mean_delta_norm = (1 + draw(6)) * record->learning_rate_sum;
  if (draw(7) > 0.9) record->statistics = {};
}

IntervalState CopyThroughNames(const IntervalState& state) {
  std::map<std::string, double> stored;
  VisitNumbers(state, [&stored](const char* name, double number) { stored[name] = number; });
  IntervalState copy;
  VisitNumbers(copy, [&stored](const char* name, double& number) { number = stored.at(name); });
  copy.losses = state.losses;
  return copy;
}

TEST(IntervalPolicy, ARestartAtAnyRoundGoesOnAlikeAndHistoryReplays) {
  for (const IntervalPolicy policy :
       {IntervalPolicy::kFixed, IntervalPolicy::kAutoloco, IntervalPolicy::kQsr, IntervalPolicy::kPath,
        IntervalPolicy::kDispersion, IntervalPolicy::kAdacomm, IntervalPolicy::kRandom, IntervalPolicy::kReplay}) {
    IntervalConfig config = Cosine(policy);
    config.spike_guard = true;
    config.target_rounds = policy == IntervalPolicy::kRandom || policy == IntervalPolicy::kPath ? 120 : 0;
    config.replay = {20, 30, 40};
    const std::vector<RoundRecord> history = RunOf(config, Lively);
    if (policy == IntervalPolicy::kAutoloco) {
      EXPECT_GT(Count(history, Reason::kSpike), 0);
      EXPECT_GT(Count(history, Reason::kHeld), 0);
    }
    // Killed and restarted after every round.
    IntervalState state;
    std::uint64_t done = 0;
    for (const RoundRecord& want : history) {
      const RoundRecord got = Play(config, Lively, done, CopyThroughNames(state));
      EXPECT_EQ(got, want) << IntervalPolicyName(policy) << " round " << want.round;
      ObserveRound(config, got, &state);
      EXPECT_EQ(CopyThroughNames(state), state);
      done += got.inner_steps;
    }
    const std::vector<IntervalDecision> decisions = ReplayDecisions(config, history);
    ASSERT_EQ(decisions.size(), history.size());
    for (std::size_t i = 0; i < history.size(); ++i) {
      EXPECT_EQ(decisions[i].steps, history[i].inner_steps);
      EXPECT_EQ(decisions[i].interval, history[i].interval);
      EXPECT_EQ(decisions[i].reason, history[i].reason);
      EXPECT_EQ(decisions[i].momentum_scale, history[i].momentum_scale);
    }
  }
}

}  // namespace
}  // namespace autoloco::server
