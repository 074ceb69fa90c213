#include "worker/runtime/console_format.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace autoloco::worker {

std::string ShortNumber(double value) {
  constexpr struct {
    double unit;
    const char* suffix;
  } kUnits[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [unit, suffix] : kUnits) {
    if (value < unit) continue;
    const double scaled = value / unit;
    return absl::StrFormat(scaled < 10 ? "%.2f%s" : scaled < 100 ? "%.1f%s" : "%.0f%s", scaled, suffix);
  }
  return absl::StrFormat("%.0f", value);
}

std::string ShortDuration(absl::Duration duration) {
  const std::int64_t seconds = std::max<std::int64_t>(0, absl::ToInt64Seconds(duration));
  if (seconds < 60) return absl::StrFormat("%ds", seconds);
  if (seconds < 3600) return absl::StrFormat("%dm%02ds", seconds / 60, seconds % 60);
  if (seconds < 86400) return absl::StrFormat("%dh%02dm", seconds / 3600, seconds / 60 % 60);
  return absl::StrFormat("%dd%02dh", seconds / 86400, seconds / 3600 % 24);
}

std::string ProgressBar(std::uint64_t done, std::uint64_t target, int width) {
  const auto cells = static_cast<std::uint64_t>(width);
  const std::uint64_t full = target == 0 ? 0 : std::min(cells, done * cells / target);
  return absl::StrCat("[", std::string(full, '#'), std::string(cells - full, '.'), "]");
}

std::string LiveLine(const ProgressNumbers& numbers, int columns) {
  std::string line = absl::StrCat("round ", numbers.round, " ", WorkerPhaseName(numbers.phase));
  if (numbers.steps_target > 0) {
    absl::StrAppend(&line, " ", ProgressBar(numbers.steps_done, numbers.steps_target, 20), " ", numbers.steps_done, "/",
                    numbers.steps_target);
  }
  if (numbers.inner_steps_done > 0) absl::StrAppendFormat(&line, "  loss %.3f", numbers.loss);
  if (numbers.tokens_per_second > 0) absl::StrAppend(&line, "  ", ShortNumber(numbers.tokens_per_second), " tok/s");
  absl::StrAppendFormat(&line, "  computing %.0f%%", 100 * numbers.compute_share);
  if (numbers.bits_per_value > 0) absl::StrAppendFormat(&line, "  sent %.2f bits", numbers.bits_per_value);
  if (numbers.snr_db) absl::StrAppendFormat(&line, " %.1f dB", *numbers.snr_db);
  if (numbers.time_left) absl::StrAppend(&line, "  left ", ShortDuration(*numbers.time_left));
  return line.substr(0, static_cast<std::size_t>(std::max(0, columns)));
}

}  // namespace autoloco::worker
