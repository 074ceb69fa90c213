#include "server/kernels/step_reference.h"

#include <algorithm>

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

void RemoveEchoPlainly(float mean_factor, const StepBlock& block) {
  for (std::size_t begin = 0; begin < block.count; begin += kEchoRange) {
    const std::size_t end = std::min(begin + kEchoRange, block.count);
    EchoLanes lanes;
    MeasureEcho(mean_factor, block, begin, end, &lanes);
    SubtractEcho(lanes.Factor(end - begin), block, begin, end);
  }
}

StepKernels MakeReference() {
  StepKernels kernels;
  kernels.name = "plain";
  kernels.step[0] = {&StepPlainly<StepForm::kNesterov, false>, &StepPlainly<StepForm::kNesterov, true>};
  kernels.step[1] = {&StepPlainly<StepForm::kMomentum, false>, &StepPlainly<StepForm::kMomentum, true>};
  kernels.step[2] = {&StepPlainly<StepForm::kCorrected, false>, &StepPlainly<StepForm::kCorrected, true>};
  kernels.scale = &ScalePlainly;
  kernels.remove_echo = &RemoveEchoPlainly;
  return kernels;
}

}  // namespace

const StepKernels& ReferenceStepKernels() {
  static const StepKernels kernels = MakeReference();
  return kernels;
}

}  // namespace autoloco::server
