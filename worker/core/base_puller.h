// Which version the worker's base buffer is known to hold, and the pulls that bring it to the server's current one.
//
// One pull is one step: the server looks at what the buffer holds and sends what follows from it, so several may be
// needed (all blocks from the live parameters, then the broadcasts that make them one version). The buffer itself knows
// what it holds; here stands what the server has confirmed of it.
#ifndef AUTOLOCO_WORKER_CORE_BASE_PULLER_H_
#define AUTOLOCO_WORKER_CORE_BASE_PULLER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "worker/core/backoff.h"
#include "worker/core/config.h"
#include "worker/core/effects.h"
#include "worker/core/events.h"
#include "worker/core/types.h"

namespace autoloco::worker {

// Part of the worker's machine; not thread-safe. While a pull that is no probe runs, the buffer holds nothing.
class BasePuller {
 public:
  explicit BasePuller(const MachineConfig& config) : backoff_(config.reconnect_max, config.jitter_seed, 2) {}

  // Confirmed by the server; none: nothing, or what is there still has to be confirmed or completed.
  std::optional<Version> held() const { return held_; }
  const std::string& held_digest() const { return held_digest_; }  // empty: it holds nothing
  bool pulling() const { return ticket_.has_value(); }
  bool probing() const { return pulling() && probe_; }  // the running pull writes nothing
  // The server sends what changes: a version that is not needed for itself still has to be passed.
  bool follows() const { return follows_; }
  // No pull runs and none has to wait for its turn.
  bool CanStart(absl::Time now) const { return !pulling() && now >= retry_at_; }

  // REQUIRES: CanStart.
  void Start(Ticket ticket, const Identity& identity, bool probe, std::vector<Effect>* effects);
  // Gives the pull up, if one runs.
  void Cancel(std::vector<Effect>* effects);

  // Whether the event is the end of the running pull; it is over then. One that has brought the whole live parameters
  // and is not the first since something was confirmed makes the next one wait.
  bool OnEnded(const PullEnded& event, absl::Time now);
  // The pull that ended did not bring what is needed: returns the pause before the next one.
  absl::Duration Pause(absl::Time now);

  // The server is back: a pause is over.
  void Wake() { retry_at_ = absl::InfinitePast(); }

  std::optional<absl::Time> NextDeadline(absl::Time now) const;

 private:
  std::optional<Version> held_;
  std::string held_digest_;
  std::optional<Ticket> ticket_;  // of the running pull
  bool probe_ = false;            // it is one
  bool follows_ = false;
  int lives_ = 0;                 // pulls of the live parameters since something was confirmed
  absl::Time retry_at_ = absl::InfinitePast();
  Backoff backoff_;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CORE_BASE_PULLER_H_
