// The inner learning rate as a function of the global inner step: workers train with it, and the server plans intervals
// by it. Both must mean the same number, so there is one function.
#ifndef AUTOLOCO_COMMON_BASE_SCHEDULE_H_
#define AUTOLOCO_COMMON_BASE_SCHEDULE_H_

#include <cstdint>

namespace autoloco {

enum class Schedule {
  kConstant,
  kCosine,
  kWsd,  // warm-up, stable, decay: flat at the peak, then linear over the last part of the run
};

struct ScheduleConfig {
  Schedule schedule = Schedule::kCosine;
  double learning_rate = 4e-4;  // peak
  std::uint64_t warmup_steps = 0;
  std::uint64_t total_steps = 1;
  double final_ratio = 0.1;
  double decay_fraction = 0.2;  // kWsd: share of total_steps that decays

  bool operator==(const ScheduleConfig&) const = default;
};

// Learning rate of global inner step `step`, counted from 0. Warm-up: peak * (step + 1) / warmup_steps while
// step < warmup_steps; afterwards constant at the peak, or cosine from the peak down to peak * final_ratio at
// total_steps, or flat and then linear down to peak * final_ratio. Steps beyond total_steps get the last value.
// Continuous: no step changes by more than the slopes allow.
double LearningRateAt(const ScheduleConfig& config, std::uint64_t step);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_BASE_SCHEDULE_H_
