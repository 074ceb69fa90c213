#include "server/core/round_statistics.h"

#include <algorithm>
#include <cmath>

namespace autoloco::server {

RoundStatistics ComputeRoundStatistics(const RoundScalars& scalars) {
  RoundStatistics statistics;
  double delta_power = 0;
  for (const DeltaScalars& delta : scalars.deltas) {
    const double scale = delta.weight / delta.share;
    delta_power += delta.share * scale * scale * delta.squared_norm;
  }
  const double mean_power = scalars.mean_squared_norm;
  if (scalars.deltas.empty() || !std::isfinite(delta_power) || !std::isfinite(mean_power)) return statistics;
  statistics.delta_power = delta_power;
  statistics.mean_power = mean_power;
  const double path = std::sqrt(delta_power * scalars.inner_steps) / scalars.parameter_norm;
  if (std::isfinite(path)) statistics.path = path;
  if (scalars.deltas.size() < 2 || delta_power <= 0) return statistics;

  const double n = static_cast<double>(scalars.deltas.size());
  statistics.noise = (delta_power - mean_power) / (1 - 1 / n);
  statistics.common = (n * mean_power - delta_power) / (n - 1);
  // sig2 + noise2 is P.
  const double agreement = std::clamp(*statistics.common / delta_power, kAgreementMin, kAgreementMax);
  statistics.agreement = agreement;
  statistics.noise_steps = scalars.inner_steps * (1 - agreement) / agreement;
  return statistics;
}

}  // namespace autoloco::server
