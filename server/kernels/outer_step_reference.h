// The outer step in plain loops over whole vectors: slow, easy to read, kept for ever. What the fused kernel must equal
// bit for bit; never used by the server.
#ifndef AUTOLOCO_SERVER_KERNELS_OUTER_STEP_REFERENCE_H_
#define AUTOLOCO_SERVER_KERNELS_OUTER_STEP_REFERENCE_H_

#include <span>

#include "absl/status/statusor.h"
#include "server/kernels/outer_step.h"

namespace autoloco::server {

// As ApplyOuterStep, on one thread; with a view D is taken less its echo (commit.h). Decodes everything first: on any
// error nothing has been changed, and the code is that of the decoder. The statistics add up in another order than the
// kernel's and agree to rounding.
absl::StatusOr<OuterStepStatistics> ApplyOuterStepReference(std::span<const Contribution> contributions,
                                                            const OuterCoefficients& coefficients,
                                                            std::span<float> params, std::span<float> momentum,
                                                            std::span<const float> view = {});

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_KERNELS_OUTER_STEP_REFERENCE_H_
