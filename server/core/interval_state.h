// All that the interval policy remembers from round to round: plain numbers, part of every checkpoint, so that a
// restarted server goes on with the same intervals.
#ifndef AUTOLOCO_SERVER_CORE_INTERVAL_STATE_H_
#define AUTOLOCO_SERVER_CORE_INTERVAL_STATE_H_

#include <vector>

namespace autoloco::server {

// A default one is that of a new run.
struct IntervalState {
  double rounds = 0;  // committed

  // The measured part of a rule (interval_rules.h).
  double rounds_after_warmup = 0;
  double average = 0;  // moving, of the measured number
  double average_count = 0;
  double reference_sum = 0;  // of the measured numbers of the calibration rounds
  double reference_count = 0;
  double factor = 1;   // what the measured part multiplies the rule by
  double missing = 0;  // 1: the last round gave no number

  // The spike guard (spike_guard.h).
  double speed_average = 0;  // of |D| per unit of inner learning rate
  double speed_count = 0;
  double spiking = 0;          // 1: within a spike that has been acted on
  double halve = 0;            // 1: the next decision halves interval and momentum
  double ceiling = 0;          // no interval longer than this; 0: none
  double ceiling_hold = 0;     // rounds until the ceiling rises
  std::vector<double> losses;  // first losses of the last rounds, oldest first

  double budget = 0;  // ln of the factor that the budget has settled on

  bool operator==(const IntervalState&) const = default;
};

// Calls visit(name, number) for every number but the losses, which have a name of their own: the one list of fields for
// those who store the state. `State` is IntervalState or const IntervalState.
template <typename State, typename Visitor>
void VisitNumbers(State& state, Visitor visit) {
  visit("rounds", state.rounds);
  visit("rounds_after_warmup", state.rounds_after_warmup);
  visit("average", state.average);
  visit("average_count", state.average_count);
  visit("reference_sum", state.reference_sum);
  visit("reference_count", state.reference_count);
  visit("factor", state.factor);
  visit("missing", state.missing);
  visit("speed_average", state.speed_average);
  visit("speed_count", state.speed_count);
  visit("spiking", state.spiking);
  visit("halve", state.halve);
  visit("ceiling", state.ceiling);
  visit("ceiling_hold", state.ceiling_hold);
  visit("budget", state.budget);
}

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_INTERVAL_STATE_H_
