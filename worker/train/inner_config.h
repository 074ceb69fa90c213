// The inner optimizer's settings as plain numbers (InnerConfig of run_config.proto says what each one means).
#ifndef AUTOLOCO_WORKER_TRAIN_INNER_CONFIG_H_
#define AUTOLOCO_WORKER_TRAIN_INNER_CONFIG_H_

#include <cstdint>

namespace autoloco::worker {

struct AdamWConfig {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // not on one-dimensional tensors
  double clip_norm = 1;       // 0: never

  bool operator==(const AdamWConfig&) const = default;
};

enum class Schedule { kConstant, kCosine };

struct ScheduleConfig {
  Schedule schedule = Schedule::kCosine;
  double learning_rate = 4e-4;  // peak
  std::uint64_t warmup_steps = 0;
  std::uint64_t total_steps = 1;
  double final_ratio = 0.1;

  bool operator==(const ScheduleConfig&) const = default;
};

// Learning rate of global inner step `step`, counted from 0. Warm-up: peak * (step + 1) / warmup_steps while
// step < warmup_steps; afterwards constant at the peak, or cosine from the peak down to peak * final_ratio at
// total_steps. Steps beyond total_steps get the last value. Continuous: no step changes by more than the slopes allow.
double LearningRateAt(const ScheduleConfig& config, std::uint64_t step);

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_TRAIN_INNER_CONFIG_H_
