// Pulls: who may read, and what each is sent.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/core/pull_choice.h"
#include "server/core/round_machine_impl.h"

namespace autoloco::server {

// The first version whose broadcast the shell still has.
Version RoundMachine::Impl::OldestBroadcast() const {
  const Version kept = config_.broadcasts_kept;
  return std::max(config_.first_broadcast, state_.version >= kept ? state_.version - kept + 1 : Version{1});
}

void RoundMachine::Impl::On(const PullOpened& pull) {
  if (pull.sender.run_id == config_.run_id) TakeOverIfClaimed(pull.sender.worker);
  Reason reason = Reason::kMalformed;
  const absl::Status status = CheckSender(pull.sender, &reason);
  if (!status.ok()) {
    Emit(RefusePull{pull.ticket, status});
    return;
  }
  On(WorkerHeard{pull.sender});
  PullSituation situation;
  situation.current = state_.version;
  situation.current_digest = view_digest_;
  situation.initial_digest = initial_digest_;
  situation.history = state_.history;
  situation.lossless = config_.method.broadcast.lossless();
  situation.committing = phase_ == RunPhase::kCommitting;
  situation.oldest_broadcast = OldestBroadcast();
  PullChoice choice = ChoosePull(pull, situation);
  if (choice.mismatch && pull.part.first_block == 0) {  // one of the pull's streams tells
    Decide(DecisionKind::kMembership, Reason::kViewMismatch, pull.sender.worker,
           absl::StrCat("it holds version ", pull.held_version, " with digest ", pull.held_digest, ", the server's is ",
                        ViewDigestOf(pull.held_version, situation)));
  }
  switch (choice.kind) {
    case PullChoice::Kind::kRefuse: Emit(RefusePull{pull.ticket, choice.status}); return;
    case PullChoice::Kind::kPark: parked_pulls_.push_back(pull); return;
    case PullChoice::Kind::kServe: break;
  }
  if (!pull.header_only || choice.form == PullForm::kNothing) {
    members_.Find(pull.sender.worker.name)->base_version = choice.version;
  }
  Emit(ServePull{pull.ticket, choice.form, choice.version, std::move(choice.view_digest), pull.header_only,
                 pull.part.first_block, pull.part.block_count});
}

// Those that came in the middle of the commit that is done now.
void RoundMachine::Impl::AnswerParkedPulls() {
  for (const PullOpened& pull : std::exchange(parked_pulls_, {})) On(pull);
}

}  // namespace autoloco::server
