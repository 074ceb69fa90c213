#include "tests/e2e/storm_report.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace autoloco::test {
namespace {

// What an allocator may keep for itself, whatever the model.
constexpr double kMemorySlackBytes = 16e6;

std::uint64_t Largest(const std::vector<MemorySample>& samples, double from, double to) {
  std::uint64_t most = 0;
  for (const MemorySample& sample : samples) {
    if (sample.seconds >= from && sample.seconds <= to) most = std::max(most, sample.bytes);
  }
  return most;
}

double LastSecond(const StormResults& results) { return results.memory.empty() ? 0 : results.memory.back().seconds; }

}  // namespace

void RoundCount::Read(absl::string_view line) {
  if (absl::StrContains(line, " reason=opened ")) {
    ++opened_;
    open_ = true;
  } else if (absl::StrContains(line, " round_committed ")) {
    ++committed_;
    open_ = false;
  }
}

double CommittedShare(const StormResults& results) {
  if (results.rounds_opened == 0) return 0;
  return static_cast<double>(results.rounds) / static_cast<double>(results.rounds_opened);
}

double Participation(const StormResults& results) {
  if (results.shares.empty()) return 0;
  return std::accumulate(results.shares.begin(), results.shares.end(), 0.0) /
         static_cast<double>(results.shares.size());
}

double MedianOf(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::infinity();
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::uint64_t FirstMemory(const StormResults& results) { return Largest(results.memory, 0, LastSecond(results) / 3); }

std::uint64_t LastMemory(const StormResults& results) {
  return Largest(results.memory, LastSecond(results) * 2 / 3, LastSecond(results));
}

StormVerdict Judge(const StormResults& results, const StormBounds& bounds) {
  StormVerdict verdict;
  const auto add = [&verdict](bool holds, const std::string& text) {
    verdict.passed = verdict.passed && holds;
    verdict.lines.push_back(absl::StrCat(holds ? "ok    " : "FAIL  ", text));
  };
  const double committed = CommittedShare(results);
  add(committed >= bounds.committed_share_min,
      absl::StrFormat("%d of %d rounds opened were committed: %.4f, at least %.4f", results.rounds,
                      results.rounds_opened, committed, bounds.committed_share_min));
  const double participation = Participation(results);
  add(participation >= bounds.participation_min,
      absl::StrFormat("of the workers alive when a round opened %.4f contributed on average, at least %.4f",
                      participation, bounds.participation_min));
  const double restart = MedianOf(results.restart_seconds);
  add(restart < bounds.restart_seconds_max,
      absl::StrFormat("from restart to contribution %.2f s, median of %d, below %.2f", restart,
                      results.restart_seconds.size(), bounds.restart_seconds_max));
  const double first = static_cast<double>(FirstMemory(results));
  const double last = static_cast<double>(LastMemory(results));
  add(first > 0 && last <= first * bounds.memory_growth_max + kMemorySlackBytes,
      absl::StrFormat("server memory %.1f MB in the first third, %.1f MB in the last, at most %.2f times as much",
                      first / 1e6, last / 1e6, bounds.memory_growth_max));
  add(results.ledger_balanced, "the token ledger balances, and all that is stored is as recorded");
  for (const std::string& fault : results.faults) add(false, fault);
  return verdict;
}

std::string StormJson(const StormOptions& options, const StormResults& results, bool passed) {
  nlohmann::ordered_json json;
  json["workers"] = options.workers;
  json["minutes"] = options.minutes;
  json["seed"] = options.seed;
  json["rounds"] = results.rounds;
  json["rounds_opened"] = results.rounds_opened;
  json["committed_share"] = CommittedShare(results);
  json["participation"] = Participation(results);
  const double restart = MedianOf(results.restart_seconds);
  json["restart_to_contribution_s"] =
      results.restart_seconds.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(restart);
  json["restarts_measured"] = results.restart_seconds.size();
  json["ledger_balanced"] = results.ledger_balanced;
  json["rss_first_bytes"] = FirstMemory(results);
  json["rss_last_bytes"] = LastMemory(results);
  json["worker_kills"] = results.worker_kills;
  json["server_kills"] = results.server_kills;
  json["faults"] = results.faults;
  json["passed"] = passed;
  return json.dump(2) + "\n";
}

}  // namespace autoloco::test
