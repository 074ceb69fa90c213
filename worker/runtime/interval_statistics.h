// The scalars of one interval, gathered step by step: what IntervalReport of parameter_server.proto asks for.
#ifndef AUTOLOCO_WORKER_RUNTIME_INTERVAL_STATISTICS_H_
#define AUTOLOCO_WORKER_RUNTIME_INTERVAL_STATISTICS_H_

#include <cstdint>
#include <deque>

#include "absl/time/time.h"
#include "worker/core/types.h"

namespace autoloco::worker {

struct StepRecord {
  double loss = 0;           // nats a token
  double gradient_norm = 0;  // before clipping
  double learning_rate = 0;
  std::uint64_t tokens = 0;
  absl::Duration duration;
};

// Sums in fp64, in the order of the steps. Not thread-safe.
class IntervalStatistics {
 public:
  // `planned_steps`: H of the interval; it sets the number of steps that count as first and last.
  explicit IntervalStatistics(std::uint32_t planned_steps);

  void Add(const StepRecord& step);
  // Over the steps added so far. REQUIRES: at least one.
  IntervalReport Report() const;

 private:
  const std::uint32_t edge_;  // min(16, H/4), at least 1
  std::uint32_t steps_ = 0;
  std::uint64_t tokens_ = 0;
  double learning_rate_sum_ = 0;
  double loss_sum_ = 0;
  double loss_first_sum_ = 0;
  std::deque<double> last_losses_;
  double gradient_norm_sum_ = 0;
  absl::Duration duration_;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_RUNTIME_INTERVAL_STATISTICS_H_
