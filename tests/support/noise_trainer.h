// A trainer that takes no time and no memory, for benchmarks of rounds: an interval forgets where it began and ends in
// noise. A gate makes the rounds of many workers begin together.
#ifndef AUTOLOCO_TESTS_SUPPORT_NOISE_TRAINER_H_
#define AUTOLOCO_TESTS_SUPPORT_NOISE_TRAINER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/support/gate.h"
#include "worker/train/trainer.h"

namespace autoloco::worker {

struct NoiseTrainerOptions {
  std::uint64_t seed = 1;                      // every worker has its own
  std::unique_ptr<test::Gate> gate = nullptr;  // null: nobody waits
};

// GetParameters gives N(0, 0.02^2), a function of seed and steps taken: every block is a piece of one table, at a place
// that is drawn. A delta is then the base minus noise, and as large in every round. Whatever SetParameters is given is
// not looked at.
//
// With a gate, SetParameters waits there before anything else and GetParameters once its values are written: spans run
// from filled parameters to the next base, which is the round, and from there to filled parameters, which is not.
class NoiseTrainer final : public Trainer {
 public:
  NoiseTrainer(Layout layout, NoiseTrainerOptions options);

  const Layout& layout() const override { return layout_; }
  absl::Status SetParameters(std::span<const float> values) override;
  absl::Status GetParameters(std::span<float> values) override;
  absl::StatusOr<StepResult> Step(const TokenBatch& batch, double learning_rate) override;
  // Moments of zero.
  absl::StatusOr<std::uint64_t> SaveOptimizerState(std::span<float> first_moment,
                                                   std::span<float> second_moment) override;
  absl::Status LoadOptimizerState(std::span<const float> first_moment, std::span<const float> second_moment,
                                  std::uint64_t steps) override;
  absl::StatusOr<LossSum> Evaluate(const TokenBatch& batch) override;
  std::string Description() const override { return "noise trainer"; }

 private:
  absl::Status PassGate();

  const Layout layout_;
  const NoiseTrainerOptions options_;
  std::vector<float> table_;
  std::uint64_t steps_ = 0;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_TESTS_SUPPORT_NOISE_TRAINER_H_
