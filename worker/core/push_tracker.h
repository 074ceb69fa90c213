// One encoded delta on its way to the server: sent, answered, or asked about when its answer was lost. It runs beside
// the next interval's work, since the round often closes before the answer of its last push arrives.
#ifndef AUTOLOCO_WORKER_CORE_PUSH_TRACKER_H_
#define AUTOLOCO_WORKER_CORE_PUSH_TRACKER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "worker/core/backoff.h"
#include "worker/core/config.h"
#include "worker/core/effects.h"
#include "worker/core/events.h"
#include "worker/core/types.h"

namespace autoloco::worker {

// Part of the worker's machine; not thread-safe. Holds one delta at the most.
class PushTracker {
 public:
  explicit PushTracker(const MachineConfig& config) : backoff_(config.reconnect_max, config.jitter_seed, 3) {}

  // A delta is encoded. `base_digest`: of the parameters that the interval started from. `parked`: not sent before
  // Resume or Adopt. `last`: this worker leaves after it. REQUIRES: !holds().
  void Begin(const HeldDelta& delta, const std::string& base_digest, bool parked, bool last);
  // A delta from before the worker was started again; parked. REQUIRES: !holds().
  void Restore(const HeldDelta& delta);
  // Sends or asks, when something is due. `next_ticket` is drawn from.
  void Advance(absl::Time now, Ticket* next_ticket, std::vector<Effect>* effects);

  // Stops sending and keeps the delta: the incarnation that it belongs to is over.
  void Park(std::vector<Effect>* effects);
  // The server takes the parked delta under its own key.
  void Resume();
  // The same assignment was given to the new incarnation: the parked delta becomes its own.
  void Adopt(const Identity& owner);
  // The server is back: a pause is over.
  void Wake(absl::Time now);
  // The next delta waits for this one's outcome: one that is still being sent although its round is over is given up,
  // and the server is asked.
  void Hurry(absl::Time now, std::vector<Effect>* effects);
  // Forgets the delta, if there is one.
  void Drop(std::vector<Effect>* effects);
  // The delta's round is over: an answer may still come, but it is not sent again.
  void OnRoundClosed(Version version);

  bool holds() const { return state_ != State::kNone; }
  bool parked() const { return state_ == State::kParked; }
  // REQUIRES: holds().
  const HeldDelta& delta() const { return delta_; }
  const Assignment& assignment() const { return delta_.assignment; }
  // Whether the delta starts from this version with these parameters. A server that lost versions makes them again, and
  // with other deltas they are not the same.
  bool StartsFrom(Version version, const std::string& digest) const {
    return delta_.assignment.round == version && base_digest_ == digest;
  }

  // The delta's round is over: it cannot count unless it arrived before.
  bool round_closed() const { return round_closed_; }

  // Whether `ticket` is the push or question under way; it is over then, and one of Drop, SendAgain and Pause follows.
  bool OnEnded(Ticket ticket);
  // The server knows of no delta under this key.
  void SendAgain();
  // The answer was lost: asks for it after the pause returned.
  absl::Duration Pause(absl::Time now);

  std::optional<absl::Time> NextDeadline() const;

 private:
  enum class State {
    kNone,
    kParked,   // waits for Resume or Adopt
    kDue,      // to be sent with the next Advance
    kSending,  // next: kEnded
    kPausing,  // until retry_at_; next: kAsking
    kAsking,   // next: kEnded
    kEnded,    // the machine decides; next: kNone, kDue, kPausing, kParked
  };

  State state_ = State::kNone;
  HeldDelta delta_;
  std::string base_digest_;
  bool last_ = false;
  bool round_closed_ = false;
  Ticket ticket_ = 0;
  absl::Time retry_at_;
  Backoff backoff_;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CORE_PUSH_TRACKER_H_
