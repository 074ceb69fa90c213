// Runs one arm with one seed: workers and server in one thread, out of the product's own pieces. Decisions, weights,
// correction and statistics are server/core, the commit is server/kernels on payloads of common/codec, the learning
// rate and AdamW are those of the worker; only transport and time are left out.
#ifndef AUTOLOCO_TESTS_BENCH_LEARNING_SIMULATION_H_
#define AUTOLOCO_TESTS_BENCH_LEARNING_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/decoder.h"
#include "tests/bench/learning/arm.h"
#include "tests/bench/learning/run_result.h"
#include "tests/bench/learning/training_text.h"

namespace autoloco::bench {

// What every run of a report reads. Immutable; shared by threads.
struct BenchData {
  const TrainingText* text = nullptr;
  std::vector<std::int32_t> round_windows;
  std::vector<std::int32_t> final_windows;
};

// The model that is trained: a byte-level decoder of 38,048 parameters.
DecoderShape BenchShape(std::uint32_t context);

// `progress` is called with the model steps done since the last call. Deterministic: equal arguments, equal result but
// for its seconds. A run that diverges is a result (loss infinite); errors are those of torch and of the kernel.
// REQUIRES: arm.momentum is not kTuned.
absl::StatusOr<RunResult> SimulateRun(const BenchSettings& settings, const BenchData& data, const Arm& arm,
                                      std::uint64_t seed, const std::function<void(std::uint64_t)>& progress);

// Bytes that one worker of data-parallel training sends and receives for the same tokens: every step its fp32 gradient,
// and the sum of all back.
double DataParallelBytes(const BenchSettings& settings, std::uint64_t value_count);

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_LEARNING_SIMULATION_H_
