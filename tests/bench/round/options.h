// Command line of bench_round.
#ifndef AUTOLOCO_TESTS_BENCH_ROUND_OPTIONS_H_
#define AUTOLOCO_TESTS_BENCH_ROUND_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace autoloco::bench {

struct RoundCase {
  std::uint64_t params = 0;
  std::uint32_t workers = 0;

  bool operator==(const RoundCase&) const = default;
};

struct RoundOptions {
  bool help = false;
  std::vector<RoundCase> cases;
  std::uint32_t rounds = 5;  // the first one warms up and does not count
  std::string baseline;      // shell command of another server and its workers; empty: none
  std::uint32_t pairs = 5;   // runs of the baseline, in turn with as many of our own; without one: one run of our own
  std::string json;          // empty: none
  std::vector<std::string> server_flags;  // everything else: settings of the server and of the run
};

// INVALID_ARGUMENT names the option.
absl::StatusOr<RoundOptions> ParseRoundOptions(const std::vector<std::string>& arguments);

std::string RoundOptionsHelp();

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_ROUND_OPTIONS_H_
