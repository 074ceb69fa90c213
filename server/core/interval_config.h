// The settings of the interval policy as plain numbers; run_config.proto says what each one means.
#ifndef AUTOLOCO_SERVER_CORE_INTERVAL_CONFIG_H_
#define AUTOLOCO_SERVER_CORE_INTERVAL_CONFIG_H_

#include <cstdint>
#include <vector>

#include "common/base/schedule.h"

namespace autoloco::server {

enum class IntervalPolicy {
  kFixed,       // DiLoCo: always the reference interval
  kAutoloco,    // lengthens with the falling inner learning rate, modulated by the workers' measured agreement
  kQsr,         // lengthens with its square (arXiv 2310.14423)
  kPath,        // holds the measured length of an interval
  kDispersion,  // holds the workers' dispersion a step
  kAdacomm,     // follows the training loss (arXiv 1810.08313)
  kRandom,      // control arm: a random order of intervals that are spread log-uniformly
  kReplay,      // the intervals of a former run
};

// The name used in configuration, history and logs, e.g. "autoloco".
const char* IntervalPolicyName(IntervalPolicy policy);

struct IntervalConfig {
  IntervalPolicy policy = IntervalPolicy::kFixed;
  std::uint32_t steps = 500;  // H_ref
  std::uint32_t steps_min = 250;
  std::uint32_t steps_max = 4000;
  std::uint64_t total_inner_steps = 1;
  ScheduleConfig schedule;

  double learning_rate_power = 1;  // kAutoloco: p_lr
  double agreement_power = 0.33;   // kAutoloco: p_q
  double dispersion_power = 0.5;   // kDispersion: p
  std::uint32_t calibration_rounds = 5;
  bool spike_guard = false;
  std::uint64_t target_rounds = 0;  // the budget around any rule, the length of kRandom's list; 0: no budget
  std::uint64_t seed = 1;           // kRandom
  std::vector<std::uint32_t> replay;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_INTERVAL_CONFIG_H_
