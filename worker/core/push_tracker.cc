#include "worker/core/push_tracker.h"

#include "common/base/check.h"

namespace autoloco::worker {

void PushTracker::Begin(const HeldDelta& delta, const std::string& base_digest, bool parked, bool last) {
  AUTOLOCO_CHECK(!holds());
  state_ = parked ? State::kParked : State::kDue;
  delta_ = delta;
  base_digest_ = base_digest;
  last_ = last;
  round_closed_ = false;
  backoff_.Reset();
}

void PushTracker::Restore(const HeldDelta& delta) {
  AUTOLOCO_CHECK(!holds());
  state_ = State::kParked;
  delta_ = delta;
}

void PushTracker::Advance(absl::Time now, Ticket* next_ticket, std::vector<Effect>* effects) {
  if (state_ == State::kDue) {
    state_ = State::kSending;
    ticket_ = (*next_ticket)++;
    effects->push_back(
        StartPush{.ticket = ticket_, .identity = delta_.owner, .round = delta_.assignment.round, .leaving = last_});
  } else if (state_ == State::kPausing && now >= retry_at_) {
    state_ = State::kAsking;
    ticket_ = (*next_ticket)++;
    effects->push_back(AskPushStatus{.ticket = ticket_, .identity = delta_.owner, .round = delta_.assignment.round});
  }
}

void PushTracker::Park(std::vector<Effect>* effects) {
  if (state_ == State::kNone) return;
  if (state_ == State::kSending || state_ == State::kAsking) effects->push_back(CancelPush{.ticket = ticket_});
  state_ = State::kParked;
}

void PushTracker::Resume() {
  if (state_ != State::kParked) return;
  state_ = State::kDue;
  round_closed_ = false;
  backoff_.Reset();
}

void PushTracker::Adopt(const Identity& owner) {
  if (state_ != State::kParked) return;
  delta_.owner = owner;
  Resume();
}

void PushTracker::Wake(absl::Time now) {
  if (state_ == State::kPausing) retry_at_ = now;
}

void PushTracker::Hurry(absl::Time now, std::vector<Effect>* effects) {
  if (state_ != State::kSending || !round_closed_) return;
  effects->push_back(CancelPush{.ticket = ticket_});
  state_ = State::kPausing;
  retry_at_ = now;
}

void PushTracker::Drop(std::vector<Effect>* effects) {
  if (state_ == State::kNone) return;
  if (state_ == State::kSending || state_ == State::kAsking) effects->push_back(CancelPush{.ticket = ticket_});
  effects->push_back(DropDelta{.round = delta_.assignment.round});
  state_ = State::kNone;
}

void PushTracker::OnRoundClosed(Version version) {
  if (state_ != State::kNone && delta_.assignment.round < version) round_closed_ = true;
}

bool PushTracker::OnEnded(Ticket ticket) {
  if ((state_ != State::kSending && state_ != State::kAsking) || ticket != ticket_) return false;
  state_ = State::kEnded;
  return true;
}

void PushTracker::SendAgain() {
  AUTOLOCO_CHECK(state_ == State::kEnded);
  state_ = State::kDue;
}

absl::Duration PushTracker::Pause(absl::Time now) {
  AUTOLOCO_CHECK(state_ == State::kEnded);
  const absl::Duration pause = backoff_.Next();
  state_ = State::kPausing;
  retry_at_ = now + pause;
  return pause;
}

std::optional<absl::Time> PushTracker::NextDeadline() const {
  if (state_ != State::kPausing) return std::nullopt;
  return retry_at_;
}

}  // namespace autoloco::worker
