// What a worker needs from a training engine: parameters in and out as one flat vector, and one inner step at a time.
// No torch type shows here; worker/train/torch_trainer.cc implements it with LibTorch, tests/support with a formula.
#ifndef AUTOLOCO_WORKER_TRAIN_TRAINER_H_
#define AUTOLOCO_WORKER_TRAIN_TRAINER_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/layout.h"

namespace autoloco::worker {

// `rows` windows of `columns` tokens, row-major, borrowed for the call. Column t + 1 is the target of column t, so a
// window of context C has C + 1 columns.
struct TokenBatch {
  std::span<const std::int32_t> tokens;  // (rows, columns)
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
};

struct StepResult {
  double loss = 0;           // mean cross entropy, nats a token
  double gradient_norm = 0;  // global norm before clipping
};

struct LossSum {
  double nats = 0;
  std::uint64_t tokens = 0;
};

// Not thread-safe: one thread at a time. Errors: INTERNAL when the engine fails (message of the engine),
// RESOURCE_EXHAUSTED when device memory runs out.
class Trainer {
 public:
  virtual ~Trainer() = default;

  virtual const Layout& layout() const = 0;

  // Copies all parameters in or out, fp32 in layout order. REQUIRES: values.size() == layout().value_count().
  virtual absl::Status SetParameters(std::span<const float> values) = 0;
  virtual absl::Status GetParameters(std::span<float> values) = 0;

  // One inner AdamW step: forward, backward, clip, update with `learning_rate`. The optimizer's state stays with the
  // trainer across SetParameters: it is never reset. A non-finite loss is returned, not an error.
  virtual absl::StatusOr<StepResult> Step(const TokenBatch& batch, double learning_rate) = 0;

  // AdamW's moments, fp32 in layout order, and the number of steps behind them (returned): with the parameters, all
  // that a step depends on. What was saved and loaded again, here or in another process, goes on with the same bits.
  // REQUIRES: both spans have layout().value_count() values.
  virtual absl::StatusOr<std::uint64_t> SaveOptimizerState(std::span<float> first_moment,
                                                           std::span<float> second_moment) = 0;
  virtual absl::Status LoadOptimizerState(std::span<const float> first_moment, std::span<const float> second_moment,
                                          std::uint64_t steps) = 0;

  // Cross entropy of all targets of the batch, without a gradient.
  virtual absl::StatusOr<LossSum> Evaluate(const TokenBatch& batch) = 0;

  // One line for the start log: device, threads, BLAS, versions.
  virtual std::string Description() const = 0;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_TRAIN_TRAINER_H_
