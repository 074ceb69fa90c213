// The step's loops in plain C++: the definition that every vectorized kernel equals bit for bit, and the tails of those
// kernels.
#ifndef AUTOLOCO_SERVER_KERNELS_STEP_REFERENCE_H_
#define AUTOLOCO_SERVER_KERNELS_STEP_REFERENCE_H_

#include <cstddef>

#include "server/kernels/step_kernels.h"

namespace autoloco::server {

// Partial sums, kStatisticLanes of each.
struct StepLanes {
  double mean[kStatisticLanes] = {};
  double momentum[kStatisticLanes] = {};
  double params[kStatisticLanes] = {};

  StepSums InOrder() const {
    StepSums sums;
    for (std::size_t lane = 0; lane < kStatisticLanes; ++lane) {
      sums.mean += mean[lane];
      sums.momentum += momentum[lane];
      sums.params += params[lane];
    }
    return sums;
  }
};

inline double Squared(float value) { return static_cast<double>(value) * static_cast<double>(value); }

// Steps the values begin .. end - 1. Every operation is rounded, none is fused.
template <StepForm kForm, bool kView>
void StepValues(const StepScalars& s, const StepBlock& block, std::size_t begin, std::size_t end, StepLanes* lanes) {
  for (std::size_t i = begin; i < end; ++i) {
    const float d = block.sum[i] * s.mean_factor;
    const float old = block.momentum[i];
    float b = 0;
    float step = 0;
    if constexpr (kForm == StepForm::kCorrected) {
      step = s.a * d + s.c * old;
      b = s.p * old + s.g * d;
    } else {
      b = s.mu * old + d;
      step = kForm == StepForm::kNesterov ? d + s.mu * b : b;
    }
    const float theta = block.params[i] - s.eta * step;
    block.momentum[i] = b;
    block.params[i] = theta;
    if constexpr (kView) block.sum[i] = theta - block.view[i];
    lanes->mean[i % kStatisticLanes] += Squared(d);
    lanes->momentum[i % kStatisticLanes] += Squared(b);
    lanes->params[i % kStatisticLanes] += Squared(theta);
  }
}

const StepKernels& ReferenceStepKernels();

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_KERNELS_STEP_REFERENCE_H_
