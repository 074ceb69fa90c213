// One run of the baseline: a command that is no part of the project and brings its own server and workers.
#ifndef AUTOLOCO_TESTS_BENCH_ROUND_BASELINE_RUN_H_
#define AUTOLOCO_TESTS_BENCH_ROUND_BASELINE_RUN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/bench/round/measurement.h"

namespace autoloco::bench {

// Runs `command` in a shell with `--params N --workers K --rounds R --json FILE` added. It must write a list with one
// object to FILE: round_seconds, bytes_up, bytes_down, server_peak_rss_bytes, with our meaning. Errors carry what it
// said.
absl::StatusOr<Measurement> RunBaseline(const std::string& command, std::uint64_t params, std::uint32_t workers,
                                        std::uint32_t rounds);

// That file's text. INVALID_ARGUMENT names the key that is missing or no number.
absl::StatusOr<Measurement> ParseBaselineJson(absl::string_view text);

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_ROUND_BASELINE_RUN_H_
