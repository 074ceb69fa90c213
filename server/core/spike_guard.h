// Reacts to a round that went wrong: where the mean of its first losses is above the mean of the last 20 rounds (at
// least 5) by 4 of their standard deviations, or its |D| above 3 times its moving average (0.9 old + 0.1 new), the next
// round halves interval and momentum, and for 3 more rounds intervals do not grow; then they return by x1.25 a round.
//
// |D| is taken per unit of accumulated inner learning rate: with warm-up and with longer intervals |D| grows by itself.
// One spike is acted on once: the guard is armed again by a round that is no spike. It sees committed rounds only, so a
// replay gives the same.
#ifndef AUTOLOCO_SERVER_CORE_SPIKE_GUARD_H_
#define AUTOLOCO_SERVER_CORE_SPIKE_GUARD_H_

#include "server/core/interval_state.h"
#include "server/core/round_record.h"

namespace autoloco::server {

inline constexpr std::size_t kSpikeWindow = 20;
inline constexpr std::size_t kSpikeRoundsMin = 5;
inline constexpr double kSpikeDeviations = 4;
inline constexpr double kSpikeSpeedRatio = 3;
inline constexpr double kSpikeHoldRounds = 3;

// Takes the round into the guard's numbers and decides whether the next one is halved. `interval` is what the policy
// had decided for the round, before rounding.
void ObserveSpike(const RoundRecord& record, double interval, IntervalState* state);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_SPIKE_GUARD_H_
