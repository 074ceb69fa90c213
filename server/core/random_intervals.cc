// The list of intervals of the control arm.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/base/check.h"
#include "common/base/random.h"
#include "server/core/interval_policy.h"

namespace autoloco::server {
namespace {

constexpr int kBisections = 64;

// Interval `index` of `count`, scaled and limited.
double Scaled(const IntervalConfig& config, double scale, std::size_t index, std::size_t count) {
  const double least = config.steps_min;
  const double most = config.steps_max;
  const double place = (static_cast<double>(index) + 0.5) / static_cast<double>(count);
  return std::clamp(scale * least * std::pow(most / least, place), least, most);
}

double SumOf(const IntervalConfig& config, double scale, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += Scaled(config, scale, i, count);
  return sum;
}

}  // namespace

std::vector<std::uint32_t> RandomIntervals(const IntervalConfig& config) {
  AUTOLOCO_CHECK(config.target_rounds >= 1);
  const auto count = static_cast<std::size_t>(config.target_rounds);
  const double total = static_cast<double>(config.total_inner_steps);
  // The scale that gives the sum, by bisection of its logarithm.
  const double range = std::log(static_cast<double>(config.steps_max) / config.steps_min);
  double low = -range;
  double high = range;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (low + high) / 2;
    (SumOf(config, std::exp(middle), count) < total ? low : high) = middle;
  }
  // Rounded so that every partial sum is right to half a step.
  std::vector<std::uint32_t> sorted(count);
  double sum = 0;
  double rounded_sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += Scaled(config, std::exp(high), i, count);
    sorted[i] = static_cast<std::uint32_t>(std::max(1.0, std::round(sum - rounded_sum)));
    rounded_sum += sorted[i];
  }
  const Permutation order(count, config.seed);
  std::vector<std::uint32_t> intervals(count);
  for (std::size_t i = 0; i < count; ++i) intervals[i] = sorted[order.At(i)];
  return intervals;
}

}  // namespace autoloco::server
