#include "common/config/intervals.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/config/value.h"

namespace autoloco {

StepLimits ToStepLimits(const v1::IntervalConfig& interval) {
  const std::uint32_t steps = interval.steps();
  StepLimits limits;
  limits.least = interval.steps_min() != 0 ? interval.steps_min() : std::max(1u, steps / 2);
  limits.most = interval.steps_max() != 0 ? interval.steps_max() : 8 * steps;
  return limits;
}

absl::StatusOr<std::vector<std::uint32_t>> ParseIntervals(absl::string_view text) {
  std::vector<std::uint32_t> intervals;
  if (text.empty()) return intervals;
  for (const absl::string_view entry : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(entry, absl::MaxSplits('x', 1));
    const bool repeated = parts.first.size() < entry.size();
    std::uint32_t steps = 0;
    std::uint32_t times = 1;
    const bool read = absl::SimpleAtoi(parts.first, &steps) && (!repeated || absl::SimpleAtoi(parts.second, &times));
    if (!read || steps == 0 || steps > kIntervalStepsMax || times > kIntervalListMax - intervals.size()) {
      return absl::InvalidArgumentError(absl::StrCat("expected intervals of 1 to ", kIntervalStepsMax,
                                                     " steps, as 20,25 or 20x12,25x3, at most ", kIntervalListMax,
                                                     " in all, found ", Quoted(entry)));
    }
    intervals.insert(intervals.end(), times, steps);
  }
  return intervals;
}

}  // namespace autoloco
