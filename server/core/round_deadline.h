// When a round closes without those it still waits for.
//
// Nobody can guess a deadline that fits a model, a link and a set of machines, so it is learned from the round itself:
// once a quorum has delivered, the others get
//
//   median arrival + clamp(k 1.4826 MAD, slack_min, slack_share_max x median duration)
//
// where an arrival is counted from the opening of the round (who joins in the middle is given as much work as ends with
// the others, so its arrival is like theirs), and a duration from the worker's own assignment. 1.4826 MAD is a standard
// deviation where arrivals are normal, and one wild arrival does not move it. The floor wins over the ceiling: in short
// rounds noise is larger than half a duration.
//
// Whatever the quorum: when all that are still awaited have broken sessions and send nothing, the round waits for
// `disconnect_grace` after the last delivery or the last break, whichever is later.
#ifndef AUTOLOCO_SERVER_CORE_ROUND_DEADLINE_H_
#define AUTOLOCO_SERVER_CORE_ROUND_DEADLINE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/time/time.h"
#include "server/core/reasons.h"

namespace autoloco::server {

struct DeadlineSettings {
  double quorum_share = 0.6;  // of the assigned; 1: there is no deadline
  double spread_factor = 4;   // k
  absl::Duration slack_min = absl::Seconds(1);
  double slack_share_max = 0.5;
  absl::Duration fixed = absl::ZeroDuration();  // the operator's, from the opening; 0: learned
  absl::Duration disconnect_grace = absl::Seconds(3);
};

// One assigned worker, as the deadline sees it.
struct AwaitedWork {
  enum class State {
    kDelivered,
    kEndedEarly,    // delivered a part of its interval and left: says nothing of how long the others need
    kMissing,       // can no longer deliver
    kConnected,     // may deliver: has a session, or its delta is coming in
    kDisconnected,  // might come back
  };
  State state = State::kConnected;
  absl::Time assigned_at;
  absl::Time delivered_at;     // kDelivered, kEndedEarly
  absl::Time disconnected_at;  // kDisconnected
};

struct RoundDeadline {
  std::uint32_t quorum = 0;           // deliveries that make a deadline
  std::optional<absl::Time> at;       // empty: the round waits for everybody
  Reason reason = Reason::kDeadline;  // kDeadline, kDeadlineFixed or kDisconnectGrace
  std::string text;                   // the numbers behind it
};

// ceil(share x assigned), at least 1.
std::uint32_t QuorumOf(double share, std::size_t assigned);

// The deadline of a round that opened at `opened_at`, as of now; it moves as deltas come in. Pure.
RoundDeadline ComputeDeadline(const DeadlineSettings& settings, absl::Time opened_at,
                              std::span<const AwaitedWork> work);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_ROUND_DEADLINE_H_
