// Where the engine writes how far it is, and the run loop and the console read it.
#ifndef AUTOLOCO_WORKER_RUNTIME_PROGRESS_BOARD_H_
#define AUTOLOCO_WORKER_RUNTIME_PROGRESS_BOARD_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/codec/codec.h"
#include "worker/core/types.h"
#include "worker/runtime/interval_statistics.h"

namespace autoloco::worker {

struct ProgressNumbers {
  WorkerPhase phase = WorkerPhase::kJoining;
  Round round = 0;               // of the last interval begun
  std::uint32_t steps_done = 0;  // of it
  std::uint32_t steps_target = 0;
  std::uint64_t inner_steps_done = 0;       // global position
  std::uint64_t inner_steps_total = 0;      // 0: not known yet
  double loss = 0;                          // last inner step
  double tokens_per_second = 0;             // moving average over about 16 steps
  double compute_share = 0;                 // of wall time since the engine was ready
  double bits_per_value = 0;                // of the last encoded delta; 0: none yet
  std::optional<double> snr_db = std::nullopt;  // of its coding; none: lossless
  std::optional<absl::Duration> time_left;  // of the run, at the pace since this worker's first step
};

// Thread-safe.
class ProgressBoard {
 public:
  explicit ProgressBoard(const Clock* clock) : clock_(clock) {}

  // The engine is ready: compute_share counts from here.
  void Ready(std::uint64_t inner_steps_total);
  void SetPhase(WorkerPhase phase);
  void IntervalBegan(const Assignment& assignment);
  void StepDone(const StepRecord& step);
  void DeltaEncoded(const CodingReport& coding);
  // Time spent on evaluation.
  void Computed(absl::Duration duration);

  ProgressNumbers Read() const;

 private:
  const Clock* const clock_;
  mutable Mutex mutex_;
  ProgressNumbers numbers_ ABSL_GUARDED_BY(mutex_);
  absl::Duration computed_ ABSL_GUARDED_BY(mutex_);
  std::optional<Instant> ready_at_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t first_inner_step_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<Instant> first_interval_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_RUNTIME_PROGRESS_BOARD_H_
