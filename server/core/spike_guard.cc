#include "server/core/spike_guard.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace autoloco::server {
namespace {

constexpr double kNewWeight = 0.1;
constexpr double kRise = 1.25;
// Equal losses have no deviation but that of their rounding.
constexpr double kDeviationMin = 1e-6;

bool IsLossSpike(double loss, const std::vector<double>& losses) {
  if (losses.size() < kSpikeRoundsMin) return false;
  const double count = static_cast<double>(losses.size());
  const double mean = std::accumulate(losses.begin(), losses.end(), 0.0) / count;
  double squares = 0;
  for (const double one : losses) squares += (one - mean) * (one - mean);
  const double deviation = std::max(std::sqrt(squares / (count - 1)), kDeviationMin * std::abs(mean));
  return loss > mean + kSpikeDeviations * deviation;
}

// What the ceiling does in the round after `interval`.
void MoveCeiling(double interval, IntervalState* state) {
  if (state->halve == 1) {
    state->halve = 0;
    state->ceiling = interval;
    state->ceiling_hold = kSpikeHoldRounds;
  } else if (state->ceiling > 0 && state->ceiling_hold > 1) {
    state->ceiling_hold -= 1;
  } else if (state->ceiling > 0 && interval < state->ceiling) {
    state->ceiling = 0;  // it no longer binds
  } else if (state->ceiling > 0) {
    state->ceiling *= kRise;
  }
}

}  // namespace

void ObserveSpike(const RoundRecord& record, double interval, IntervalState* state) {
  MoveCeiling(interval, state);
  bool spike = false;
  if (record.loss_first && std::isfinite(*record.loss_first)) {
    spike = IsLossSpike(*record.loss_first, state->losses);
    state->losses.push_back(*record.loss_first);
    if (state->losses.size() > kSpikeWindow) state->losses.erase(state->losses.begin());
  }
  const double speed = record.mean_delta_norm / record.learning_rate_sum;
  if (std::isfinite(speed) && speed > 0) {
    spike = spike || (state->speed_count >= kSpikeRoundsMin && speed > kSpikeSpeedRatio * state->speed_average);
    const double weight = state->speed_count == 0 ? 1 : kNewWeight;
    state->speed_average = (1 - weight) * state->speed_average + weight * speed;
    state->speed_count += 1;
  }
  if (spike && state->spiking == 0) state->halve = 1;
  state->spiking = spike ? 1 : 0;
}

}  // namespace autoloco::server
