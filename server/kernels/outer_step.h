// The round commit: from the deltas of a round, in one pass over the parameters, to the next version.
//
// With deltas d_1 .. d_n ("start minus end"), weights w_i, learning rate eta and momentum mu, for every
// value, all in fp32, every operation rounded, none fused, in exactly this order:
//
//   D     = (((d_1 + d_2) + d_3) + ... + d_n) * (1 / n)     all weights equal 1/n; n = 1: D = d_1
//   D     = ((w_1 d_1 + w_2 d_2) + ...) + w_n d_n           otherwise, w_i rounded to fp32 once
//   D     = median or trimmed mean of the n w_i d_i         by coordinate, where asked for (robust_mean.h); n w_i
//                                                           rounded to fp32 once, and not multiplied where all are 1
//   b     = mu b + D
//   theta = theta - eta (D + mu b)                          nesterov
//   theta = theta - eta b                                   otherwise
//
// or, where the step is corrected for the length of its interval (server/core/outer_schedule.h has the scalars):
//
//   theta = theta - eta (a D + c b);  b = p b + g D         with the old b
//
// The first is torch.optim.SGD(lr=eta, momentum=mu, nesterov) on the gradient D with b starting at 0. With n = 1, eta = 1,
// mu = 0 the result is theta - (theta - theta_end), bit for bit (but for the sign of a zero).
//
// A block is decoded into cache, combined and applied before the next one is touched; no buffer of the size of the
// model exists beside parameters and momentum. The result depends on the order of the contributions, which the caller
// fixes (by worker name), and neither on threads nor on what arrived when. outer_step_reference.h is the same in plain
// loops; tests hold the two equal bit for bit.
#ifndef AUTOLOCO_SERVER_KERNELS_OUTER_STEP_H_
#define AUTOLOCO_SERVER_KERNELS_OUTER_STEP_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/parallel.h"
#include "common/codec/delta_codec.h"
#include "server/kernels/robust_mean.h"

namespace autoloco::server {

// One worker's delta as it was pushed. The bytes are borrowed and must not change during the commit.
struct Contribution {
  std::span<const std::byte> payload;
  Codec codec = Codec::kFp32;
  double weight = 0;  // w_i
};

// The scalars of a corrected step, rounded to fp32 once.
struct CorrectedStep {
  double a = 0;
  double c = 0;
  double p = 0;
  double g = 0;
};

struct OuterCoefficients {
  double learning_rate = 0.7;  // eta
  double momentum = 0.9;       // mu
  bool nesterov = true;
  std::optional<CorrectedStep> corrected = std::nullopt;  // given: momentum and nesterov do not count
  CombineRule combine = {};
};

// What the commit saw. Sums of squares in fp64, in an order that depends on the number of values alone.
struct OuterStepStatistics {
  std::vector<double> delta_squared_norms;  // |d_i|^2, in the order of the contributions
  double mean_delta_squared_norm = 0;       // |D|^2, less its echo where there is a view
  double momentum_squared_norm = 0;         // |b|^2 after the step
  double params_squared_norm = 0;           // |theta|^2 after the step
  bool finite = true;                       // no value of momentum and parameters is NaN or infinite after the step
};

// Applies one outer step to `params` and `momentum`, in place.
// REQUIRES: params.size() == momentum.size(); params, momentum and the payloads do not overlap.
//
// INVALID_ARGUMENT: no contribution, a weight that is not positive and finite, weights whose sum is above kWeightSumMax
// (equal work gives 1; unequal work is weighed by velocity, which gives more; a clipped delta gives less),
// coefficients that are not finite, a payload whose block headers do not tile it. Nothing has been changed then.
// INTERNAL: a block failed its checksum or did not decode. Payloads are verified before they are acknowledged and are
// immutable since, so this means damaged memory or disk. Some blocks have taken the step and others have not: the
// caller must not use or save `params` and `momentum` any more; it ends the process and recovers from the checkpoint.
absl::StatusOr<OuterStepStatistics> ApplyOuterStep(std::span<const Contribution> contributions,
                                                   const OuterCoefficients& coefficients, std::span<float> params,
                                                   std::span<float> momentum, WorkPool* pool);

// The checks on weights and coefficients that ApplyOuterStep makes, by themselves.
absl::Status ValidateOuterStep(std::span<const Contribution> contributions, const OuterCoefficients& coefficients);

inline constexpr double kWeightSumMax = 32;

// Whether all weights are the same number and sum to 1: the plain mean is taken then.
bool HasUniformWeights(std::span<const Contribution> contributions);

// What a delta is scaled by before it votes in a median or trimmed mean: n w_i.
float VoteScale(std::span<const Contribution> contributions, std::size_t index);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_KERNELS_OUTER_STEP_H_
