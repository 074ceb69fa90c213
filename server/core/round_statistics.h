// What the deltas of one round say of each other: how much of them is common, how much is each worker's own noise.
//
//   P      = sum p_i |D_i|^2                 D_i scaled to the common length S_eff / S_i
//   Q      = |D|^2
//   noise2 = (P - Q) / (1 - 1/n)             dispersion of one worker, unbiased
//   sig2   = (n Q - P) / (n - 1)             common part, unbiased
//   q      = sig2 / (sig2 + noise2)          mean cosine between workers, clipped to [1e-3, 0.999]
//   Hn     = H (1 - q) / q                   noise scale in inner steps
//   path   = sqrt(P H) / |theta|             measured length of an interval
//
// n is the number of contributors: with p_i ~ tokens (inverse-variance weights) that, and not 1 / sum p_i^2, makes both
// estimates unbiased. All in fp64.
#ifndef AUTOLOCO_SERVER_CORE_ROUND_STATISTICS_H_
#define AUTOLOCO_SERVER_CORE_ROUND_STATISTICS_H_

#include <cstdint>
#include <optional>
#include <span>

namespace autoloco::server {

// One delta that was combined.
struct DeltaScalars {
  double share = 0;         // p_i
  double weight = 0;        // w_i on the raw delta; w_i / p_i is S_eff / S_i
  double squared_norm = 0;  // |D_i|^2, raw
};

struct RoundScalars {
  std::span<const DeltaScalars> deltas;
  double mean_squared_norm = 0;  // |D|^2
  double parameter_norm = 0;     // |theta|
  double inner_steps = 0;        // H
};

// A number that is undefined is empty: with fewer than two contributors, after a value that is not finite, where all
// deltas are zero. What was made out of it is held then.
struct RoundStatistics {
  std::optional<double> delta_power;  // P
  std::optional<double> mean_power;   // Q
  std::optional<double> noise;        // noise2; may be slightly negative where nothing is noise
  std::optional<double> common;       // sig2; may be negative where nothing is common
  std::optional<double> agreement;    // q
  std::optional<double> noise_steps;  // Hn
  std::optional<double> path;
  bool operator==(const RoundStatistics&) const = default;
};

inline constexpr double kAgreementMin = 1e-3;
inline constexpr double kAgreementMax = 0.999;

RoundStatistics ComputeRoundStatistics(const RoundScalars& scalars);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_ROUND_STATISTICS_H_
