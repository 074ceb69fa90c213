// Time as a dependency: the shells ask a Clock, the cores get `now` with every event.
#ifndef AUTOLOCO_COMMON_BASE_CLOCK_H_
#define AUTOLOCO_COMMON_BASE_CLOCK_H_

#include "absl/time/time.h"

namespace autoloco {

// An instant of the monotonic clock, expressed as absl::Time for its arithmetic; unrelated to the time of day.
using Instant = absl::Time;

class Clock {
 public:
  virtual ~Clock() = default;
  // Never decreases. Thread-safe.
  virtual Instant Now() const = 0;
};

// CLOCK_MONOTONIC. Thread-safe; lives for ever.
const Clock* MonotonicClock();

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_BASE_CLOCK_H_
