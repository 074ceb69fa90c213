#include "common/base/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace autoloco {
namespace {

// How much of the way from the peak to the final rate is done, 0 to 1. REQUIRES: warmup_steps < step <= total_steps.
double FallAt(const ScheduleConfig& config, std::uint64_t step) {
  if (config.schedule == Schedule::kConstant) return 0;
  if (config.schedule == Schedule::kCosine) {
    const double progress =
        static_cast<double>(step - config.warmup_steps) / static_cast<double>(config.total_steps - config.warmup_steps);
    return (1 - std::cos(std::numbers::pi * progress)) / 2;
  }
  const double total = static_cast<double>(config.total_steps);
  const double begin = std::max(total * (1 - config.decay_fraction), static_cast<double>(config.warmup_steps));
  return begin < total ? std::max(0.0, (static_cast<double>(step) - begin) / (total - begin)) : 0;
}

}  // namespace

double LearningRateAt(const ScheduleConfig& config, std::uint64_t step) {
  step = std::min(step, config.total_steps);
  const double peak = config.learning_rate;
  if (step < config.warmup_steps) {
    return peak * static_cast<double>(step + 1) / static_cast<double>(config.warmup_steps);
  }
  if (config.schedule == Schedule::kConstant || step == config.warmup_steps) return peak;
  return peak * (1 - FallAt(config, step) * (1 - config.final_ratio));
}

}  // namespace autoloco
