#include "server/core/interval_policy.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "server/core/interval_budget.h"
#include "server/core/interval_rules.h"
#include "server/core/spike_guard.h"

namespace autoloco::server {
namespace {

Reason ReasonOfRule(IntervalPolicy policy, const IntervalState& state) {
  const bool schedule_alone = policy == IntervalPolicy::kAutoloco && state.factor == 1;
  if (state.missing == 1 && !schedule_alone) return Reason::kHeld;
  switch (policy) {
    case IntervalPolicy::kFixed: return Reason::kFixed;
    case IntervalPolicy::kAutoloco: return schedule_alone ? Reason::kLearningRate : Reason::kAgreement;
    case IntervalPolicy::kQsr: return Reason::kLearningRate;
    case IntervalPolicy::kPath: return Reason::kPath;
    case IntervalPolicy::kDispersion: return Reason::kDispersion;
    case IntervalPolicy::kAdacomm: return Reason::kLoss;
    case IntervalPolicy::kRandom: return Reason::kRandom;
    case IntervalPolicy::kReplay: return Reason::kReplay;
  }
  return Reason::kFixed;
}

double FromList(const std::vector<std::uint32_t>& list, double rounds) {
  const std::size_t index = std::min(static_cast<std::size_t>(rounds), list.size() - 1);
  return list[index];
}

// The rule by itself.
void ApplyRule(const IntervalConfig& config, const IntervalState& state, std::uint64_t first_inner_step,
               IntervalDecision* decision) {
  const double steps = config.steps;
  decision->interval = steps;
  decision->reason = ReasonOfRule(config.policy, state);
  if (config.policy == IntervalPolicy::kFixed) {
    decision->text = absl::StrCat(steps, " steps");
    return;
  }
  if (config.policy == IntervalPolicy::kRandom || config.policy == IntervalPolicy::kReplay) {
    const bool random = config.policy == IntervalPolicy::kRandom;
    decision->interval = FromList(random ? RandomIntervals(config) : config.replay, state.rounds);
    decision->text = absl::StrCat("entry ", state.rounds, " of the list");
    return;
  }
  if (first_inner_step < config.schedule.warmup_steps) {
    decision->reason = Reason::kWarmup;
    decision->text = absl::StrCat("reference ", steps, " until inner step ", config.schedule.warmup_steps);
    return;
  }
  if (state.rounds_after_warmup < config.calibration_rounds) {
    decision->reason = Reason::kCalibration;
    decision->text = absl::StrCat("reference ", steps, ", calibration round ", state.rounds_after_warmup + 1, " of ",
                                  config.calibration_rounds);
    return;
  }
  const double schedule = ScheduleFactor(config, first_inner_step);
  decision->interval = steps * schedule * state.factor;
  decision->text = absl::StrCat("reference ", steps, " x schedule ", schedule, " x measured ", state.factor);
}

void ApplyLimits(const IntervalConfig& config, IntervalDecision* decision) {
  const double least = config.steps_min;
  const double most = config.steps_max;
  if (decision->interval < least) {
    decision->interval = least;
    decision->reason = Reason::kMinimum;
  } else if (!(decision->interval <= most)) {
    decision->interval = most;
    decision->reason = Reason::kMaximum;
  }
}

void ApplySpikeGuard(const IntervalConfig& config, const IntervalState& state, IntervalDecision* decision) {
  if (state.ceiling > 0 && decision->interval > state.ceiling) {
    decision->interval = state.ceiling;
    decision->reason = Reason::kNoGrowth;
    absl::StrAppend(&decision->text, ", held at ", state.ceiling, " after a spike");
  }
  if (state.halve == 1) {
    decision->interval = std::max(decision->interval / 2, static_cast<double>(config.steps_min));
    decision->momentum_scale = 0.5;
    decision->reason = Reason::kSpike;
    absl::StrAppend(&decision->text, ", halved after a spike, and the outer momentum with it");
  }
}

}  // namespace

const char* IntervalPolicyName(IntervalPolicy policy) {
  switch (policy) {
    case IntervalPolicy::kFixed: return "fixed";
    case IntervalPolicy::kAutoloco: return "autoloco";
    case IntervalPolicy::kQsr: return "qsr";
    case IntervalPolicy::kPath: return "path";
    case IntervalPolicy::kDispersion: return "dispersion";
    case IntervalPolicy::kAdacomm: return "adacomm";
    case IntervalPolicy::kRandom: return "random";
    case IntervalPolicy::kReplay: return "replay";
  }
  return "fixed";
}

IntervalDecision DecideInterval(const IntervalConfig& config, const IntervalState& state,
                                std::uint64_t first_inner_step) {
  AUTOLOCO_CHECK(first_inner_step < config.total_inner_steps);
  AUTOLOCO_CHECK(config.steps >= 1 && config.steps_min >= 1 && config.steps_min <= config.steps_max);
  IntervalDecision decision;
  decision.learning_rate = LearningRateAt(config.schedule, first_inner_step);
  ApplyRule(config, state, first_inner_step, &decision);
  const bool budget = HasBudget(config);
  if (budget) {
    const double factor = BudgetFactor(config, state, first_inner_step);
    decision.interval *= factor;
    decision.reason = Reason::kBudget;
    absl::StrAppend(&decision.text, " x budget ", factor);
  }
  const bool adaptive = config.policy != IntervalPolicy::kFixed && config.policy != IntervalPolicy::kReplay;
  if (adaptive || budget) ApplyLimits(config, &decision);
  if (config.spike_guard) ApplySpikeGuard(config, state, &decision);
  const std::uint64_t left = config.total_inner_steps - first_inner_step;
  const auto steps = static_cast<std::uint64_t>(std::llround(decision.interval));
  decision.steps = static_cast<std::uint32_t>(std::min(std::max<std::uint64_t>(steps, 1), left));
  if (decision.steps < steps) {
    decision.reason = Reason::kLastInterval;
    absl::StrAppend(&decision.text, ", cut to the ", left, " steps left");
  }
  return decision;
}

void ObserveRound(const IntervalConfig& config, const RoundRecord& record, IntervalState* state) {
  if (config.spike_guard) ObserveSpike(record, record.interval, state);
  if (IsMeasured(config.policy)) {
    ObserveMeasured(config, record, state);
  } else if (record.first_inner_step >= config.schedule.warmup_steps) {
    state->rounds_after_warmup += 1;
  }
  state->rounds += 1;
  if (HasBudget(config)) ObserveBudget(config, record, state);
}

std::vector<IntervalDecision> ReplayDecisions(const IntervalConfig& config, const std::vector<RoundRecord>& history) {
  std::vector<IntervalDecision> decisions;
  IntervalState state;
  for (const RoundRecord& record : history) {
    decisions.push_back(DecideInterval(config, state, record.first_inner_step));
    ObserveRound(config, record, &state);
  }
  return decisions;
}

std::string TextOf(const IntervalDecision& decision) {
  return absl::StrCat(ReasonName(decision.reason), ": ", decision.text);
}

}  // namespace autoloco::server
