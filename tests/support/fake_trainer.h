// A trainer without LibTorch for tests of the protocol: plain fp32 arithmetic on any layout, the same on every machine,
// with the two properties that such tests need: the loss falls as it trains, and other batches give other deltas.
#ifndef AUTOLOCO_TESTS_SUPPORT_FAKE_TRAINER_H_
#define AUTOLOCO_TESTS_SUPPORT_FAKE_TRAINER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/train/trainer.h"

namespace autoloco::worker {

struct FakeTrainerOptions {
  std::uint64_t seed = 1;                      // of the target; equal for all workers of a run
  absl::Duration step_duration = {};           // every Step takes at least this long; 0: no waiting
  const Clock* clock = MonotonicClock();       // measures step_duration
  double momentum = 0;                         // 0: what a step does does not depend on those before it
  std::optional<std::uint64_t> nan_step = {};  // this call of Step, counted from 0, leaves a NaN in the first parameter
};

// Pulls the parameters towards a target drawn from the seed, N(0, 0.1^2) a value. A batch sees the target with noise
// that depends on its tokens alone. With g = theta - noisy target, Step does m = momentum m + (1 - momentum) g and
// theta -= learning_rate m, and its loss is the mean of g^2 before the step. Evaluate gives the mean squared distance
// to the target itself as the loss of every token. Starts with all parameters 0. The optimizer's state is m, a decaying
// mean of g^2 that nothing uses, and the count of steps.
class FakeTrainer final : public Trainer {
 public:
  explicit FakeTrainer(Layout layout, const FakeTrainerOptions& options = {});

  const Layout& layout() const override { return layout_; }
  absl::Status SetParameters(std::span<const float> values) override;
  absl::Status GetParameters(std::span<float> values) override;
  absl::StatusOr<StepResult> Step(const TokenBatch& batch, double learning_rate) override;
  absl::StatusOr<std::uint64_t> SaveOptimizerState(std::span<float> first_moment,
                                                   std::span<float> second_moment) override;
  absl::Status LoadOptimizerState(std::span<const float> first_moment, std::span<const float> second_moment,
                                  std::uint64_t steps) override;
  absl::StatusOr<LossSum> Evaluate(const TokenBatch& batch) override;
  std::string Description() const override { return "fake trainer"; }

 private:
  void WaitUntil(Instant end) const;

  const Layout layout_;
  const FakeTrainerOptions options_;
  std::vector<float> target_;
  std::vector<float> values_;
  std::vector<float> first_moment_;
  std::vector<float> second_moment_;
  std::uint64_t steps_ = 0;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_TESTS_SUPPORT_FAKE_TRAINER_H_
