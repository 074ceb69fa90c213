#include "worker/core/session_link.h"

#include <algorithm>

namespace autoloco::worker {

SessionLink::SessionLink(const MachineConfig& config, absl::Time now)
    : config_(config), down_since_(now), retry_at_(now), backoff_(config.reconnect_max, config.jitter_seed, 1) {}

bool SessionLink::Advance(absl::Time now, const Identity& identity, const std::optional<HeldDelta>& held,
                          std::vector<Effect>* effects) {
  if (state_ == State::kDown && now >= retry_at_) {
    state_ = State::kOpening;
    was_up_ = false;
    welcome_until_ = now + config_.control_timeout;
    effects->push_back(OpenSession{.session = ++session_, .identity = identity, .held = held});
    return true;
  }
  if (state_ == State::kOpening && now >= welcome_until_) Close(effects);
  return false;
}

void SessionLink::OnWelcomed(absl::Time now) {
  state_ = State::kUp;
  was_up_ = true;
  up_since_ = now;
}

absl::Duration SessionLink::OnEnded(absl::Time now) {
  if (was_up_) {
    down_since_ = now;
    // A server that welcomes and hangs up at once must not be called every 0.2 s.
    if (now - up_since_ >= config_.reconnect_max) backoff_.Reset();
  }
  state_ = State::kDown;
  const absl::Duration pause = backoff_.Next();
  retry_at_ = now + pause;
  return pause;
}

void SessionLink::Close(std::vector<Effect>* effects) {
  if (state_ == State::kDown || state_ == State::kClosing) return;
  state_ = State::kClosing;
  effects->push_back(CloseSession{.session = session_});
}

std::optional<absl::Time> SessionLink::NextDeadline() const {
  switch (state_) {
    case State::kDown: return std::min(retry_at_, GiveUpTime());
    case State::kOpening: return std::min(welcome_until_, GiveUpTime());
    case State::kClosing: return GiveUpTime();
    case State::kUp: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace autoloco::worker
