// The budget around a rule: steers to `target_rounds` in all and keeps the rule's shape, for comparisons at equal
// communication. It multiplies the rule by
//
//   scale exp(2 z + s)
//
// scale is what makes the schedule's part of the rule take target_rounds within the limits. z is how far the committed
// rounds are ahead of that plan, (rounds - planned) / max(1, planned) clipped to +-1/2; s is the sum of 0.2 z over the
// rounds, so that no lasting lead or lag remains.
#ifndef AUTOLOCO_SERVER_CORE_INTERVAL_BUDGET_H_
#define AUTOLOCO_SERVER_CORE_INTERVAL_BUDGET_H_

#include <cstdint>

#include "server/core/interval_config.h"
#include "server/core/interval_state.h"
#include "server/core/round_record.h"

namespace autoloco::server {

// kRandom and kReplay have their number of rounds already.
bool HasBudget(const IntervalConfig& config);

// REQUIRES: HasBudget(config).
double BudgetFactor(const IntervalConfig& config, const IntervalState& state, std::uint64_t first_inner_step);

// Takes a committed round into s; state->rounds counts it already. REQUIRES: HasBudget(config).
void ObserveBudget(const IntervalConfig& config, const RoundRecord& record, IntervalState* state);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_INTERVAL_BUDGET_H_
