#include <algorithm>
#include <cmath>
#include <numbers>

#include "worker/train/inner_config.h"

namespace autoloco::worker {

double LearningRateAt(const ScheduleConfig& config, std::uint64_t step) {
  step = std::min(step, config.total_steps);
  const double peak = config.learning_rate;
  if (step < config.warmup_steps) {
    return peak * static_cast<double>(step + 1) / static_cast<double>(config.warmup_steps);
  }
  if (config.schedule == Schedule::kConstant || step == config.warmup_steps) return peak;
  const double progress =
      static_cast<double>(step - config.warmup_steps) / static_cast<double>(config.total_steps - config.warmup_steps);
  const double fall = (1 - std::cos(std::numbers::pi * progress)) / 2;
  return peak * (1 - fall * (1 - config.final_ratio));
}

}  // namespace autoloco::worker
