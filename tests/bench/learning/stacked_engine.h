// Trains several models of one shape side by side in one thread: the inner loop of all simulated workers. Each model
// has parameters, AdamW state and learning rate of its own; what one does never changes another.
#ifndef AUTOLOCO_TESTS_BENCH_LEARNING_STACKED_ENGINE_H_
#define AUTOLOCO_TESTS_BENCH_LEARNING_STACKED_ENGINE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/decoder.h"
#include "common/tensor/layout.h"
#include "worker/train/inner_config.h"

namespace autoloco::bench {

// What one step did with one model.
struct ModelStep {
  double loss = 0;           // nats a token, before the step
  double gradient_norm = 0;  // before clipping
};

// Not thread-safe; several engines may run in several threads. Parameters are zero until set.
class StackedEngine {
 public:
  // INVALID_ARGUMENT: the shape does not fit, has fewer key-value heads than heads, or a head that is not tied.
  static absl::StatusOr<std::unique_ptr<StackedEngine>> Make(const DecoderShape& shape,
                                                             const worker::AdamWConfig& config, std::uint32_t models);
  virtual ~StackedEngine() = default;

  virtual std::uint32_t models() const = 0;
  virtual const Layout& layout() const = 0;
  // REQUIRES (all): model < models(), values.size() == layout().value_count().
  virtual absl::Status SetParameters(std::uint32_t model, std::span<const float> values) = 0;
  virtual absl::Status GetParameters(std::uint32_t model, std::span<float> values) = 0;
  // Fresh AdamW state, as of a worker that joins.
  virtual absl::Status ResetOptimizer(std::uint32_t model) = 0;

  // One inner step of every model whose learning rate is positive; the others only report their loss.
  // tokens: (models, rows, context + 1), row-major. One entry a model in `learning_rates` and in the result.
  // OUT_OF_RANGE: a gradient is not finite, the run diverged. INTERNAL: torch failed.
  virtual absl::StatusOr<std::vector<ModelStep>> Step(std::span<const std::int32_t> tokens,
                                                      std::span<const double> learning_rates) = 0;
  // Sum of the losses of all targets, each model on its own rows. tokens as above.
  virtual absl::StatusOr<double> LossSum(std::span<const std::int32_t> tokens) = 0;
};

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_LEARNING_STACKED_ENGINE_H_
