// How many inner steps the next interval has: a pure function of the configuration and of the committed rounds, whose
// few numbers of memory are an IntervalState.
//
//   H = rule x budget, within the limits, below the spike guard's ceiling, halved after a spike, cut to end with the
//   run
//
//   fixed        H_ref                                       DiLoCo; no limits
//   autoloco     H_ref (lr_peak / lr)^p_lr g                 holds the accumulated inner learning rate of an interval
//   qsr          H_ref (lr_peak / lr)^2
//   path, dispersion, adacomm    H_ref g
//   random       a seeded random order of target_rounds intervals, spread log-uniformly between the limits
//   replay       a given list; its last entry goes on
//
// lr is that of the interval's first step, g the measured part (interval_rules.h). Until the inner warm-up is over and
// the calibration rounds are committed, H = H_ref. H stays a real number until it is used. The budget
// (interval_budget.h) acts where target_rounds is set, the spike guard (spike_guard.h) where it is on.
#ifndef AUTOLOCO_SERVER_CORE_INTERVAL_POLICY_H_
#define AUTOLOCO_SERVER_CORE_INTERVAL_POLICY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/core/interval_config.h"
#include "server/core/interval_state.h"
#include "server/core/reasons.h"
#include "server/core/round_record.h"

namespace autoloco::server {

struct IntervalDecision {
  std::uint32_t steps = 0;
  double interval = 0;  // H before rounding and before the last cut
  Reason reason = Reason::kFixed;
  double learning_rate = 0;   // inner, at the interval's first step
  double momentum_scale = 1;  // of the outer momentum before this round's step
  std::string text;           // the numbers behind it, for a person
};

// Reason and numbers, for a person.
std::string TextOf(const IntervalDecision& decision);

// REQUIRES: first_inner_step < config.total_inner_steps, config.steps >= 1, 1 <= steps_min <= steps_max.
IntervalDecision DecideInterval(const IntervalConfig& config, const IntervalState& state,
                                std::uint64_t first_inner_step);

// Takes a committed round into the state. REQUIRES: every committed round once, in order.
void ObserveRound(const IntervalConfig& config, const RoundRecord& record, IntervalState* state);

// The decisions that a run with this history has taken, from the history alone: one for each of its rounds.
std::vector<IntervalDecision> ReplayDecisions(const IntervalConfig& config, const std::vector<RoundRecord>& history);

// kRandom's list: `rounds` intervals between the limits that sum to `total_steps`; where the limits do not allow that
// sum, as near to it as they do. REQUIRES: rounds >= 1.
std::vector<std::uint32_t> RandomIntervals(const IntervalConfig& config);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_INTERVAL_POLICY_H_
