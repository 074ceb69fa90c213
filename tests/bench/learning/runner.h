// Runs all arms with all seeds, in an order in which each has what it needs: first the arms that need nothing (the
// sweep among them), then those that take the tuned outer momentum, then those that take another arm's number of
// rounds.
#ifndef AUTOLOCO_TESTS_BENCH_LEARNING_RUNNER_H_
#define AUTOLOCO_TESTS_BENCH_LEARNING_RUNNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/bench/learning/arm.h"
#include "tests/bench/learning/results_file.h"
#include "tests/bench/learning/run_result.h"
#include "tests/bench/learning/simulation.h"

namespace autoloco::bench {

// One line of the report.
struct ArmResults {
  Arm arm;                      // its momentum is a number
  std::vector<RunResult> runs;  // by seed: 1, 2, ...
};

struct RunnerOptions {
  BenchSettings settings;
  std::uint32_t seeds = 4;
  std::uint32_t threads = 2;
};

// The arms that `selected` need and that are not among them, added in front, out of `all`.
std::vector<Arm> WithNeededArms(const std::vector<Arm>& selected, const std::vector<Arm>& all);

// Runs what `results` does not have yet and returns everything, in the order of `arms`. Says on standard error how far
// it is. INVALID_ARGUMENT: an arm needs a sweep or a method that is not among the arms. Errors as SimulateRun and
// ResultsFile::Add.
absl::StatusOr<std::vector<ArmResults>> RunArms(const RunnerOptions& options, const BenchData& data,
                                                const std::vector<Arm>& arms, ResultsFile* results);

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_LEARNING_RUNNER_H_
