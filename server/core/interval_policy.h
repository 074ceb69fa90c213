// How many inner steps the next interval has: a pure function of the configuration and of how far the run is.
#ifndef AUTOLOCO_SERVER_CORE_INTERVAL_POLICY_H_
#define AUTOLOCO_SERVER_CORE_INTERVAL_POLICY_H_

#include <algorithm>
#include <cstdint>

namespace autoloco::server {

// DiLoCo's fixed interval, cut to end exactly with the run. REQUIRES: inner_steps_done < total_inner_steps.
inline std::uint32_t FixedInterval(std::uint32_t interval_steps, std::uint64_t inner_steps_done,
                                   std::uint64_t total_inner_steps) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(interval_steps, total_inner_steps - inner_steps_done));
}

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_INTERVAL_POLICY_H_
