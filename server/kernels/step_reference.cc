#include "server/kernels/step_reference.h"

namespace autoloco::server {
namespace {

template <StepForm kForm, bool kView>
StepSums StepPlainly(const StepScalars& scalars, const StepBlock& block) {
  StepLanes lanes;
  StepValues<kForm, kView>(scalars, block, 0, block.count, &lanes);
  return lanes.InOrder();
}

void ScalePlainly(float factor, float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] *= factor;
}

StepKernels MakeReference() {
  StepKernels kernels;
  kernels.name = "plain";
  kernels.step[0] = {&StepPlainly<StepForm::kNesterov, false>, &StepPlainly<StepForm::kNesterov, true>};
  kernels.step[1] = {&StepPlainly<StepForm::kMomentum, false>, &StepPlainly<StepForm::kMomentum, true>};
  kernels.step[2] = {&StepPlainly<StepForm::kCorrected, false>, &StepPlainly<StepForm::kCorrected, true>};
  kernels.scale = &ScalePlainly;
  return kernels;
}

}  // namespace

const StepKernels& ReferenceStepKernels() {
  static const StepKernels kernels = MakeReference();
  return kernels;
}

}  // namespace autoloco::server
