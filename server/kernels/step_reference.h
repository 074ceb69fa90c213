// The step's loops in plain C++: the definition that every vectorized kernel equals bit for bit, and the tails of those
// kernels.
#ifndef AUTOLOCO_SERVER_KERNELS_STEP_REFERENCE_H_
#define AUTOLOCO_SERVER_KERNELS_STEP_REFERENCE_H_

#include <algorithm>
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

// Of one range: sums of D e and of e^2 in kStatisticLanes partial sums, e = view - theta.
struct EchoLanes {
  double products[kStatisticLanes] = {};
  double squares[kStatisticLanes] = {};

  // The factor of the range's echo, from 0 to 1. `count`: of the range's values.
  float Factor(std::size_t count) const {
    if (count < kEchoValuesMin) return 0;
    double product = 0;
    double square = 0;
    for (std::size_t lane = 0; lane < kStatisticLanes; ++lane) {
      product += products[lane];
      square += squares[lane];
    }
    return product > 0 && square > 0 ? static_cast<float>(std::min(product / square, 1.0)) : 0.0F;
  }
};

// Both passes over the values begin .. end - 1 of one range. The first leaves D in sum.
inline void MeasureEcho(float mean_factor, const StepBlock& block, std::size_t begin, std::size_t end,
                        EchoLanes* lanes) {
  for (std::size_t i = begin; i < end; ++i) {
    const float d = block.sum[i] * mean_factor;
    const float e = block.view[i] - block.params[i];
    block.sum[i] = d;
    lanes->products[i % kStatisticLanes] += static_cast<double>(d) * static_cast<double>(e);
    lanes->squares[i % kStatisticLanes] += Squared(e);
  }
}
inline void SubtractEcho(float factor, const StepBlock& block, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    const float e = block.view[i] - block.params[i];
    block.sum[i] = block.sum[i] - factor * e;
  }
}

const StepKernels& ReferenceStepKernels();

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_KERNELS_STEP_REFERENCE_H_
