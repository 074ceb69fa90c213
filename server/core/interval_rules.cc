#include "server/core/interval_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace autoloco::server {
namespace {

constexpr double kAgreementFactorMin = 0.5;
constexpr double kAgreementFactorMax = 2;

double NewWeight(IntervalPolicy policy) {
  switch (policy) {
    case IntervalPolicy::kPath: return 0.5;
    case IntervalPolicy::kAdacomm: return 1;
    default: return 0.3;
  }
}

// What the factor should be now. REQUIRES: the reference is complete.
double TargetFactor(const IntervalConfig& config, const IntervalState& state, std::uint64_t first_inner_step) {
  const double reference = state.reference_sum / state.reference_count;
  switch (config.policy) {
    case IntervalPolicy::kAutoloco:
      return std::clamp(std::exp(config.agreement_power * (state.average - reference)), kAgreementFactorMin,
                        kAgreementFactorMax);
    case IntervalPolicy::kPath: return state.factor * reference / state.average;
    case IntervalPolicy::kDispersion: return std::exp(config.dispersion_power * (reference - state.average));
    case IntervalPolicy::kAdacomm: {
      const double grown = LearningRateRatio(config, first_inner_step) * state.average / reference;
      return std::ceil(config.steps * std::sqrt(grown)) / config.steps;
    }
    default: return 1;
  }
}

}  // namespace

bool IsMeasured(IntervalPolicy policy) {
  return policy == IntervalPolicy::kAutoloco || policy == IntervalPolicy::kPath ||
         policy == IntervalPolicy::kDispersion || policy == IntervalPolicy::kAdacomm;
}

std::optional<double> MeasuredNumber(IntervalPolicy policy, const RoundRecord& record) {
  std::optional<double> number;
  const double agreement = record.statistics.agreement.value_or(-1);
  if (policy == IntervalPolicy::kAutoloco && agreement >= 0 && agreement <= 1) {
    const double q = std::clamp(agreement, kAgreementMin, kAgreementMax);
    number = std::log((1 - q) / q);
  } else if (policy == IntervalPolicy::kPath && record.statistics.path.value_or(0) > 0) {
    number = record.statistics.path;
  } else if (policy == IntervalPolicy::kDispersion && record.statistics.noise.value_or(0) > 0) {
    number = std::log(*record.statistics.noise / record.inner_steps);
  } else if (policy == IntervalPolicy::kAdacomm && record.loss_mean.value_or(0) > 0) {
    number = record.loss_mean;
  }
  if (number && !std::isfinite(*number)) number.reset();
  return number;
}

double LearningRateRatio(const IntervalConfig& config, std::uint64_t first_inner_step) {
  const double rate = LearningRateAt(config.schedule, first_inner_step);
  return rate > 0 ? config.schedule.learning_rate / rate : std::numeric_limits<double>::infinity();
}

double ScheduleFactor(const IntervalConfig& config, std::uint64_t first_inner_step) {
  double power = 0;
  if (config.policy == IntervalPolicy::kAutoloco) power = config.learning_rate_power;
  if (config.policy == IntervalPolicy::kQsr) power = 2;
  if (power == 0 || first_inner_step < config.schedule.warmup_steps) return 1;
  return std::pow(LearningRateRatio(config, first_inner_step), power);
}

void ObserveMeasured(const IntervalConfig& config, const RoundRecord& record, IntervalState* state) {
  if (record.first_inner_step < config.schedule.warmup_steps) return;
  state->rounds_after_warmup += 1;
  const std::optional<double> number = MeasuredNumber(config.policy, record);
  state->missing = number ? 0 : 1;
  if (!number) return;
  const double weight = state->average_count == 0 ? 1 : NewWeight(config.policy);
  state->average = (1 - weight) * state->average + weight * *number;
  state->average_count += 1;
  if (state->reference_count < config.calibration_rounds) {
    state->reference_sum += *number;
    state->reference_count += 1;
    return;
  }
  const double target = TargetFactor(config, *state, record.first_inner_step + record.inner_steps);
  if (!(target > 0) || std::abs(target / state->factor - 1) <= kFactorDeadBand) return;
  state->factor = std::clamp(target, kFactorStepMin * state->factor, kFactorStepMax * state->factor);
  if (config.policy == IntervalPolicy::kAutoloco) return;
  // The factor is the whole rule: it does not run away from what the limits let through.
  const double steps = config.steps;
  state->factor = std::clamp(state->factor, config.steps_min / steps, config.steps_max / steps);
}

}  // namespace autoloco::server
