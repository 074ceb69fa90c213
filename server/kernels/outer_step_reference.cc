#include "server/kernels/outer_step_reference.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "server/kernels/step_kernels.h"

namespace autoloco::server {
namespace {

double SumOfSquares(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return sum;
}

bool AllFinite(std::span<const float> values) {
  for (const float value : values) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

// The median or trimmed mean of one value.
float Robust(std::span<const Contribution> contributions, const CombineRule& rule, bool uniform,
             const std::vector<std::vector<float>>& deltas, std::size_t i) {
  std::vector<float> values;
  for (std::size_t c = 0; c < deltas.size(); ++c) {
    const float value = uniform ? deltas[c][i] : VoteScale(contributions, c) * deltas[c][i];
    values.push_back(value == 0 ? 0.0f : value);
  }
  return CombineValues(rule, std::move(values));
}

// D of one value. `deltas[c][i]` is value i of contribution c.
float Mean(std::span<const Contribution> contributions, bool uniform, const std::vector<std::vector<float>>& deltas,
           std::size_t i) {
  const std::size_t n = contributions.size();
  if (uniform) {
    float sum = deltas[0][i];
    for (std::size_t c = 1; c < n; ++c) sum = sum + deltas[c][i];
    return n == 1 ? sum : sum * (1.0f / static_cast<float>(n));
  }
  float sum = static_cast<float>(contributions[0].weight) * deltas[0][i];
  for (std::size_t c = 1; c < n; ++c) sum = sum + static_cast<float>(contributions[c].weight) * deltas[c][i];
  return sum;
}

// D less its echo. Ranges are counted from the beginning of a block, which is a multiple of their length.
void RemoveEcho(std::span<const float> params, std::span<const float> view, std::span<float> combined) {
  for (std::size_t begin = 0; begin < combined.size(); begin += kEchoRange) {
    const std::size_t end = std::min(begin + kEchoRange, combined.size());
    double products[kStatisticLanes] = {};
    double squares[kStatisticLanes] = {};
    for (std::size_t i = begin; i < end; ++i) {
      const float e = view[i] - params[i];
      products[i % kStatisticLanes] += static_cast<double>(combined[i]) * e;
      squares[i % kStatisticLanes] += static_cast<double>(e) * e;
    }
    double product = 0;
    double square = 0;
    for (const double lane : products) product += lane;
    for (const double lane : squares) square += lane;
    if (end - begin < kEchoValuesMin || !(product > 0 && square > 0)) continue;
    const auto factor = static_cast<float>(std::min(product / square, 1.0));
    for (std::size_t i = begin; i < end; ++i) combined[i] = combined[i] - factor * (view[i] - params[i]);
  }
}

}  // namespace

absl::StatusOr<OuterStepStatistics> ApplyOuterStepReference(std::span<const Contribution> contributions,
                                                            const OuterCoefficients& coefficients,
                                                            std::span<float> params, std::span<float> momentum,
                                                            std::span<const float> view) {
  AUTOLOCO_CHECK(params.size() == momentum.size());
  AUTOLOCO_RETURN_IF_ERROR(ValidateOuterStep(contributions, coefficients));
  OuterStepStatistics statistics;
  std::vector<std::vector<float>> deltas;
  for (const Contribution& contribution : contributions) {
    std::vector<float>& delta = deltas.emplace_back(params.size());
    AUTOLOCO_RETURN_IF_ERROR(DecodeVector(contribution.payload, contribution.codec, delta));
    statistics.delta_squared_norms.push_back(SumOfSquares(delta));
  }
  const bool uniform = HasUniformWeights(contributions);
  const auto eta = static_cast<float>(coefficients.learning_rate);
  const auto mu = static_cast<float>(coefficients.momentum);
  std::vector<float> combined(params.size());
  for (std::size_t i = 0; i < params.size(); ++i) {
    combined[i] = coefficients.combine.kind == Combining::kMean
                      ? Mean(contributions, uniform, deltas, i)
                      : Robust(contributions, coefficients.combine, uniform, deltas, i);
  }
  if (!view.empty()) RemoveEcho(params, view, combined);
  for (std::size_t i = 0; i < params.size(); ++i) {
    const float d = combined[i];
    float step = 0;
    if (coefficients.corrected) {
      const CorrectedStep& s = *coefficients.corrected;
      step = static_cast<float>(s.a) * d + static_cast<float>(s.c) * momentum[i];
      momentum[i] = static_cast<float>(s.p) * momentum[i] + static_cast<float>(s.g) * d;
    } else {
      momentum[i] = mu * momentum[i] + d;
      step = coefficients.nesterov ? d + mu * momentum[i] : momentum[i];
    }
    params[i] = params[i] - eta * step;
    statistics.mean_delta_squared_norm += static_cast<double>(d) * d;
  }
  statistics.momentum_squared_norm = SumOfSquares(momentum);
  statistics.params_squared_norm = SumOfSquares(params);
  statistics.finite = AllFinite(params) && AllFinite(momentum);
  return statistics;
}

}  // namespace autoloco::server
