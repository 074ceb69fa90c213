#include "common/base/clock.h"

#include <ctime>

namespace autoloco {
namespace {

class SystemMonotonicClock final : public Clock {
 public:
  Instant Now() const override {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return absl::TimeFromTimespec(now);
  }
};

}  // namespace

const Clock* MonotonicClock() {
  static const SystemMonotonicClock* const clock =
      new SystemMonotonicClock;  // never destroyed: threads may outlive main
  return clock;
}

}  // namespace autoloco
