// The table and the JSON of bench_round.
#ifndef AUTOLOCO_TESTS_BENCH_ROUND_REPORT_H_
#define AUTOLOCO_TESTS_BENCH_ROUND_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/round/measurement.h"

namespace autoloco::bench {

// Ours over the baseline's; below 1 is better.
struct Ratios {
  double time = 0;
  double memory = 0;
  double bytes = 0;  // both ways
};

struct RoundRow {
  std::uint64_t params = 0;
  std::uint32_t workers = 0;
  std::string codec;
  Measurement ours;                     // medians over the runs
  std::optional<Measurement> baseline;  // none: there is no baseline
  std::optional<Ratios> ratios;         // medians over the pairs of runs
};

// Runs with the same index are a pair. REQUIRES: `ours` is not empty; `baseline` is empty, or as long.
RoundRow MakeRow(std::uint64_t params, std::uint32_t workers, const std::string& codec,
                 const std::vector<Measurement>& ours, const std::vector<Measurement>& baseline);

std::string RoundTable(const std::vector<RoundRow>& rows);
std::string RoundJson(const std::vector<RoundRow>& rows);

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_ROUND_REPORT_H_
