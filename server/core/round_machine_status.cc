// The run at one instant, as operators and metrics see it.
#include "absl/strings/str_cat.h"
#include "server/core/round_machine_impl.h"

namespace autoloco::server {
namespace {

WorkerState StateOf(const Member& member) {
  if (!member.alive) return WorkerState::kLeft;
  if (member.session == 0) return WorkerState::kStale;
  if (!member.ready) return WorkerState::kJoining;
  switch (member.progress.phase) {
    case WorkerPhase::kTraining:
    case WorkerPhase::kEvaluating: return WorkerState::kTraining;
    case WorkerPhase::kPushing: return WorkerState::kPushing;
    case WorkerPhase::kJoining:
    case WorkerPhase::kPulling:
    case WorkerPhase::kWaiting: return WorkerState::kWaiting;
  }
  return WorkerState::kWaiting;
}

}  // namespace

void RoundMachine::Impl::FillDeadline(RunStatus* status) const {
  const RoundDeadline deadline = Deadline();
  status->quorum = deadline.quorum;
  status->opened_at = round_.opened_at;
  status->deadline = deadline.at;
  if (deadline.at) {
    status->deadline_reason = absl::StrCat(ReasonName(deadline.reason), ": ", deadline.text);
  } else if (deadline.quorum > 0 && status->contributed < deadline.quorum) {
    status->deadline_reason = absl::StrCat("none before ", deadline.quorum, " deltas are in");
  }
}

RunStatus RoundMachine::Impl::Status() const {
  RunStatus status;
  status.phase = phase_;
  status.version = state_.version;
  status.round = round_.number;
  status.inner_steps_done = state_.inner_steps_done;
  status.inner_steps_total = config_.interval.total_inner_steps;
  status.interval_steps = round_.inner_steps;
  status.interval_reason = interval_text_;
  status.alive = members_.AliveCount();
  status.applied = last_applied_;
  status.rounds_committed = state_.version;
  status.rounds_aborted = state_.rounds_aborted;
  status.worker_inner_steps = state_.worker_inner_steps;
  status.evaluations = evaluations_.history();
  status.ledger = ledger_.totals();
  status.ledger_outstanding = OutstandingTokens(ledger_.outstanding());
  if (phase_ == RunPhase::kTraining || phase_ == RunPhase::kCommitting) {
    status.assigned = static_cast<std::uint32_t>(round_.entries.size());
    status.contributed = round_.DeliveredCount();
    FillDeadline(&status);
    status.reason =
        waiting_since_ ? WaitingText() : absl::StrCat(status.contributed, " of ", status.assigned, " deltas are in");
  } else if (ending_) {
    status.reason = ending_->text;
  } else if (phase_ == RunPhase::kFinishing) {
    status.reason = "the last version is being evaluated";
  } else {
    status.reason = WaitingText();
  }
  for (const auto& [name, member] : members_.all()) {
    WorkerStatus worker;
    worker.worker = member.id;
    worker.state = StateOf(member);
    worker.alive = member.alive;
    worker.base_version = member.base_version;
    worker.steps_done = member.progress.steps_done;
    const auto entry = round_.entries.find(name);
    if (entry != round_.entries.end()) worker.steps_target = entry->second.assignment.inner_steps;
    worker.loss = member.progress.loss;
    worker.tokens_per_second = member.progress.tokens_per_second;
    worker.compute_share = member.progress.compute_share;
    worker.tokens = member.tokens;
    const auto share = last_shares_.find(name);
    worker.share = share == last_shares_.end() ? 0 : share->second;
    worker.step_seconds = speeds_.StepSeconds(name).value_or(0);
    worker.last_seen = member.last_seen;
    worker.reason =
        member.alive ? "" : absl::StrCat(ReasonName(member.reason), member.text.empty() ? "" : ": ", member.text);
    status.workers.push_back(std::move(worker));
  }
  return status;
}

}  // namespace autoloco::server
