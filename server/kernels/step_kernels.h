// The arithmetic of the outer step on one block, between the sum of the deltas and the broadcast: outer_step.h has the
// formulas. Mean, momentum, parameters, the sums of squares of all three and what the view still lacks come out of one
// pass over memory.
//
// The loops exist twice: plain (step_reference.h, kept for ever) and vectorized for every instruction set
// (step_kernels.cc), equal bit for bit.
#ifndef AUTOLOCO_SERVER_KERNELS_STEP_KERNELS_H_
#define AUTOLOCO_SERVER_KERNELS_STEP_KERNELS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace autoloco::server {

enum class StepForm : std::uint8_t { kNesterov = 0, kMomentum = 1, kCorrected = 2 };
inline constexpr std::size_t kStepForms = 3;

// All fp32, each rounded once. `mean_factor` turns the sum of the deltas into D: 1/n for the plain mean, else 1.
struct StepScalars {
  StepForm form = StepForm::kNesterov;
  float mean_factor = 1;
  float eta = 0;
  float mu = 0;
  float a = 0;  // a to g: kCorrected alone
  float c = 0;
  float p = 0;
  float g = 0;
};

// Arrays of `count` values; none overlaps another.
struct StepBlock {
  float* sum = nullptr;         // in: the weighed deltas added up; out: parameters - view, where there is a view
  float* momentum = nullptr;    // in place
  float* params = nullptr;      // in place
  const float* view = nullptr;  // null: none
  std::size_t count = 0;
};

// Sums of squares in fp64, in kStatisticLanes partial sums (value i in sum i mod kStatisticLanes) that are added up in
// order: the same on every machine.
struct StepSums {
  double mean = 0;
  double momentum = 0;  // after the step
  double params = 0;    // after the step
};
inline constexpr std::size_t kStatisticLanes = 16;

// Values that share one factor of their echo (commit.h): those that share a scale of the broadcast in a full block.
inline constexpr std::size_t kEchoRange = 4096;
static_assert(kEchoRange % kStatisticLanes == 0);
// In fewer values than this chance looks like an echo: a short last range keeps its D.
inline constexpr std::size_t kEchoValuesMin = 64;

// The kernels of one instruction set. Immutable.
struct StepKernels {
  using Step = StepSums (*)(const StepScalars& scalars, const StepBlock& block);
  using Scale = void (*)(float factor, float* values, std::size_t count);
  using RemoveEcho = void (*)(float mean_factor, const StepBlock& block);

  const char* name = "";
  // By form, then without and with a view.
  std::array<std::array<Step, 2>, kStepForms> step = {};
  // values[i] = values[i] * factor.
  Scale scale = nullptr;
  // Before the step: sum becomes D = sum * mean_factor, less its echo (commit.h). REQUIRES: a view.
  RemoveEcho remove_echo = nullptr;

  StepSums Apply(const StepScalars& scalars, const StepBlock& block) const {
    return step[static_cast<std::size_t>(scalars.form)][block.view == nullptr ? 0 : 1](scalars, block);
  }
};

// Those for this machine's processor. Thread-safe; the choice is made once.
const StepKernels& BestStepKernels();
// All that were compiled and that this machine can run, the plain ones among them.
std::vector<const StepKernels*> AllStepKernels();

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_KERNELS_STEP_KERNELS_H_
