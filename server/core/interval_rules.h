// The rules that lengthen or shorten an interval by what was measured. Each names one number of a round and what its
// moving average, set against its mean over the calibration rounds, multiplies the interval by:
//
//   autoloco     y = ln((1 - q) / q)    g = clip(exp(p_q (avg y - ref)), 1/2, 2)        avg = 0.7 old + 0.3 new
//   path         path                   g = g clip(ref / avg, 0.8, 1.25)                avg = 0.5 old + 0.5 new
//   dispersion   ln(noise2 / H)         g = exp(p (ref - avg))                          avg = 0.7 old + 0.3 new
//   adacomm      mean loss L            g = ceil(H_ref sqrt(lr_peak L / (lr ref))) / H_ref        L itself
//
// q does not depend on H, so y does not feed back on it. A change of g below 3 % is not made, a larger one by x0.8 to
// x1.25 a round. A number that is missing or not finite holds g.
#ifndef AUTOLOCO_SERVER_CORE_INTERVAL_RULES_H_
#define AUTOLOCO_SERVER_CORE_INTERVAL_RULES_H_

#include <optional>

#include "server/core/interval_config.h"
#include "server/core/interval_state.h"
#include "server/core/round_record.h"

namespace autoloco::server {

inline constexpr double kFactorStepMin = 0.8;
inline constexpr double kFactorStepMax = 1.25;
inline constexpr double kFactorDeadBand = 0.03;

// The policies above. The others go by the schedule, or by nothing.
bool IsMeasured(IntervalPolicy policy);

// The number that `policy` goes by; empty: missing.
std::optional<double> MeasuredNumber(IntervalPolicy policy, const RoundRecord& record);

// lr_peak / lr of `first_inner_step`, infinite where lr is 0.
double LearningRateRatio(const IntervalConfig& config, std::uint64_t first_inner_step);

// What the schedule alone makes of the reference interval, as a factor: the ratio to the power of the policy; 1 for
// policies that do not go by it, and within the warm-up.
double ScheduleFactor(const IntervalConfig& config, std::uint64_t first_inner_step);

// Takes the round into average, reference and factor. Rounds that began within the warm-up do not count.
void ObserveMeasured(const IntervalConfig& config, const RoundRecord& record, IntervalState* state);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_INTERVAL_RULES_H_
