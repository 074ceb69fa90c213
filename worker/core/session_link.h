// The worker's session with the server, as far as time is concerned: down, opening, up, and when to try again.
#ifndef AUTOLOCO_WORKER_CORE_SESSION_LINK_H_
#define AUTOLOCO_WORKER_CORE_SESSION_LINK_H_

#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "worker/core/backoff.h"
#include "worker/core/config.h"
#include "worker/core/effects.h"
#include "worker/core/types.h"

namespace autoloco::worker {

// Part of the worker's machine; not thread-safe.
class SessionLink {
 public:
  // Down at first, and due at once.
  SessionLink(const MachineConfig& config, absl::Time now);

  // Opens a session when one is due, cancels one that was not welcomed in time. True when it opened one, which names
  // `held` in its Hello.
  bool Advance(absl::Time now, const Identity& identity, const std::optional<HeldDelta>& held,
               std::vector<Effect>* effects);

  // Whether events under `session` still count.
  bool IsCurrent(Ticket session) const { return state_ != State::kDown && session == session_; }
  bool opening() const { return state_ == State::kOpening; }
  bool up() const { return state_ == State::kUp; }
  bool down() const { return state_ == State::kDown; }
  Ticket session() const { return session_; }

  void OnWelcomed(absl::Time now);
  // Returns the pause before the next attempt.
  absl::Duration OnEnded(absl::Time now);
  // Cancels the session unless it is down or being cancelled. It no longer counts as up.
  void Close(std::vector<Effect>* effects);

  // Without a Welcome for connect_timeout.
  bool GaveUp(absl::Time now) const { return !up() && now >= GiveUpTime(); }
  std::optional<absl::Time> NextDeadline() const;

 private:
  enum class State {
    kDown,     // next: kOpening at retry_at_
    kOpening,  // Hello on its way; next: kUp, kDown, or kClosing when welcome_until_ passes
    kUp,       // welcomed; next: kDown, kClosing
    kClosing,  // cancelled; next: kDown
  };
  absl::Time GiveUpTime() const { return down_since_ + config_.connect_timeout; }

  const MachineConfig config_;
  State state_ = State::kDown;
  Ticket session_ = 0;  // counts the sessions
  absl::Time down_since_;
  absl::Time retry_at_;
  absl::Time welcome_until_;
  absl::Time up_since_;
  bool was_up_ = false;  // in this session
  Backoff backoff_;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CORE_SESSION_LINK_H_
