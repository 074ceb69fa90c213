// The time of day: for people and for Prometheus, never for decisions (those take an Instant of a Clock).
#ifndef AUTOLOCO_COMMON_BASE_WALL_TIME_H_
#define AUTOLOCO_COMMON_BASE_WALL_TIME_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace autoloco {

// Thread-safe. May jump when the system's clock is set.
inline absl::Time WallTimeNow() { return absl::Now(); }

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_BASE_WALL_TIME_H_
