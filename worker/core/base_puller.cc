#include "worker/core/base_puller.h"

#include "common/base/check.h"

namespace autoloco::worker {

void BasePuller::Start(Ticket ticket, const Identity& identity, bool probe, std::vector<Effect>* effects) {
  AUTOLOCO_CHECK(!pulling());
  ticket_ = ticket;
  probe_ = probe;
  effects->push_back(StartPull{.ticket = ticket, .identity = identity, .probe = probe});
  if (!probe) {
    held_.reset();
    held_digest_.clear();
  }
}

void BasePuller::Cancel(std::vector<Effect>* effects) {
  if (!ticket_) return;
  effects->push_back(CancelPull{.ticket = *ticket_});
  ticket_.reset();
}

bool BasePuller::OnEnded(const PullEnded& event, absl::Time now) {
  if (ticket_ != event.ticket) return false;
  ticket_.reset();
  if (!event.status.ok() || event.probe) return true;
  if (event.form != PullForm::kNothing) follows_ = event.form != PullForm::kFull;
  if (event.confirmed) {
    held_ = event.version;
    held_digest_ = event.digest;
    lives_ = 0;
    backoff_.Reset();
    retry_at_ = absl::InfinitePast();
  } else if (event.form == PullForm::kLive && ++lives_ > 1) {
    Pause(now);
  }
  return true;
}

absl::Duration BasePuller::Pause(absl::Time now) {
  const absl::Duration pause = backoff_.Next();
  retry_at_ = now + pause;
  return pause;
}

std::optional<absl::Time> BasePuller::NextDeadline(absl::Time now) const {
  if (pulling() || retry_at_ <= now) return std::nullopt;
  return retry_at_;
}

}  // namespace autoloco::worker
