// One interval of inner training, from its assignment to the report.
#ifndef AUTOLOCO_WORKER_RUNTIME_INTERVAL_RUNNER_H_
#define AUTOLOCO_WORKER_RUNTIME_INTERVAL_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "worker/core/types.h"
#include "worker/data/dataset.h"
#include "worker/runtime/progress_board.h"
#include "worker/runtime/run_settings.h"
#include "worker/train/trainer.h"

namespace autoloco::worker {

// How a run of the engine is ended from outside. Thread-safe.
struct StopSignal {
  static constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

  std::atomic<bool> cancel{false};                    // nothing of it is wanted
  std::atomic<std::uint32_t> end_with_steps{kNever};  // what it has is wanted if it is at least so many steps

  void Reset() {
    cancel = false;
    end_with_steps = kNever;
  }
};

// What a run of the engine works with; everything is borrowed for the call.
struct EngineTools {
  Trainer* trainer = nullptr;
  const Dataset* dataset = nullptr;
  const RunSettings* settings = nullptr;
  const Clock* clock = nullptr;
  ProgressBoard* board = nullptr;
  const StopSignal* stop = nullptr;
};

// Trains the assignment's inner steps on the parameters that the trainer holds: step i takes batch_size samples in
// order from the lease and the learning rate of global step first_inner_step + i. Equal assignments, parameters,
// optimizer state and data give equal results. Ends before its last step when `end_with_steps` are done and asked for.
// CANCELLED: `cancel` was set between two steps, or `end_with_steps` before so many were done. INVALID_ARGUMENT: the
// lease has too few samples. Others: the trainer's.
absl::StatusOr<IntervalReport> RunInterval(const EngineTools& tools, const Assignment& assignment);

// Cross entropy of this worker's part of the held-out windows on the parameters that the trainer holds: of the
// `evaluation_windows` windows spread evenly over the held-out text, part, part + parts, ...
// CANCELLED: `cancel` was set between two batches. Others: the trainer's.
absl::StatusOr<EvaluationPart> RunEvaluation(const EngineTools& tools, const Assignment& assignment);

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_RUNTIME_INTERVAL_RUNNER_H_
