// What interval.steps_min, steps_max and replay mean.
#ifndef AUTOLOCO_COMMON_CONFIG_INTERVALS_H_
#define AUTOLOCO_COMMON_CONFIG_INTERVALS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autoloco/v1/run_config.pb.h"

namespace autoloco {

struct StepLimits {
  std::uint32_t least = 1;  // at least 1
  std::uint32_t most = 1;
};
// The limits of an adaptive interval, with 0 filled in.
StepLimits ToStepLimits(const v1::IntervalConfig& interval);

inline constexpr std::uint32_t kIntervalStepsMax = 16000000;
inline constexpr std::uint32_t kIntervalListMax = 1000000;

// "20x12,25x3" as twelve times 20 and three times 25. INVALID_ARGUMENT "expected ..., found ..." for anything else, for an
// interval of 0 or above kIntervalStepsMax, and for more than kIntervalListMax of them. Empty text: no intervals.
absl::StatusOr<std::vector<std::uint32_t>> ParseIntervals(absl::string_view text);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CONFIG_INTERVALS_H_
