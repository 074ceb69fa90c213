// Command line of bench_commit.
#ifndef AUTOLOCO_TESTS_BENCH_COMMIT_OPTIONS_H_
#define AUTOLOCO_TESTS_BENCH_COMMIT_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace autoloco::bench {

struct CommitOptions {
  bool help = false;
  std::uint64_t params = 100'000'000;  // rounded up to whole blocks
  std::vector<std::uint32_t> workers = {8};
  std::uint32_t threads = 2;
  std::uint32_t repeats = 5;  // of each arm; the best one counts
  double step = 1.5;          // of the quantizer, both ways
  std::string json;           // empty: none
};

// INVALID_ARGUMENT names the option.
absl::StatusOr<CommitOptions> ParseCommitOptions(const std::vector<std::string>& arguments);

std::string CommitOptionsHelp();

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_COMMIT_OPTIONS_H_
