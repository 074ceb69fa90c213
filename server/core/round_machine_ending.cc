// The end of a run: the last evaluation, the last checkpoint, the last word to everybody.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "server/core/round_machine_impl.h"

namespace autoloco::server {

void RoundMachine::Impl::StartFinishing() {
  phase_ = RunPhase::kFinishing;
  finish_deadline_ = now_ + config_.finish_timeout;
  BeginRound();
  round_.finishing = true;
  if (config_.evaluation_windows > 0) AssignEvaluation();
  RecordOpening();
}

// The last version's evaluation, to those that are there.
void RoundMachine::Impl::AssignEvaluation() {
  for (Member* member : members_.Eligible(now_, config_.disconnect_grace)) {
    RoundEntry& entry = round_.entries[member->id.name];
    entry.incarnation = member->id.incarnation;
    entry.assignment.round = state_.version;
    entry.assignment.first_inner_step = state_.inner_steps_done;
  }
  BeginEvaluation(static_cast<std::uint32_t>(round_.entries.size()));
  for (const auto& [name, entry] : round_.entries) {
    const Member* member = members_.Find(name);
    if (member->session != 0) Emit(SendAssignment{member->session, entry.assignment});
  }
}

void RoundMachine::Impl::FinishIfEvaluated() {
  if (phase_ != RunPhase::kFinishing) return;
  bool awaited = false;
  for (const auto& [name, entry] : round_.entries) {
    if (!evaluations_.Has(name) && !IsMissing(name, entry)) awaited = true;
  }
  if (awaited && evaluations_.UnderWay() && now_ < *finish_deadline_) return;
  FinishEvaluation();
  EndRound();
  evaluated_ = true;
  Record(RunEvaluatedRecord{state_.version});
  EndCompleted();
}

void RoundMachine::Impl::EndCompleted() {
  End({0, Reason::kCompleted, absl::StrCat(state_.version, " rounds, ", state_.inner_steps_done, " inner steps")});
}

void RoundMachine::Impl::End(Ending ending) {
  ending_ = std::move(ending);
  waiting_since_.reset();
  phase_ = RunPhase::kDraining;
  const bool under_way = checkpoints_under_way_ > 0 && checkpoint_started_ == state_.version;
  if (state_.version > 0 && checkpoint_stored_ != state_.version && !under_way) StartCheckpointOf();
  EndIfStored();
}

void RoundMachine::Impl::EndIfStored() {
  if (ended_ || checkpoints_under_way_ > 0) return;
  ended_ = true;
  const bool completed = ending_->reason == Reason::kCompleted;
  if (completed) phase_ = RunPhase::kDone;
  Decide(DecisionKind::kRun, ending_->reason, {}, ending_->text);
  for (const auto& [name, member] : members_.all()) {
    if (member.session != 0) Emit(SendDrain{member.session, completed, ending_->text});
  }
  FinishIfAllWereTold();
}

// A worker whose session is broken just now would look for this server in vain: a completed run waits for it a little,
// a restarted server as long as the lease of a worker that it knows of.
bool RoundMachine::Impl::MayStillAsk(const Member& member) const {
  return member.alive && member.session == 0 &&
         (member.restored || now_ < member.disconnected_at + config_.disconnect_grace);
}

void RoundMachine::Impl::FinishIfAllWereTold() {
  if (finished_) return;
  const bool completed = phase_ == RunPhase::kDone;
  for (const auto& [name, member] : members_.all()) {
    if (completed && !shutting_down_ && MayStillAsk(member)) return;
  }
  finished_ = true;
  Emit(RunFinished{ending_->exit_code, completed, ending_->text});
}

void RoundMachine::Impl::StartCheckpointOf() {
  checkpoint_started_ = state_.version;
  checkpoints_under_way_++;
  StartCheckpoint start{state_};
  if (round_open_) static_cast<DataCursors&>(start.snapshot) = round_.cursors_before;
  Emit(std::move(start));
}

// A commit from version `version` on may need deltas that began in earlier rounds.
Round RoundMachine::Impl::FirstRoundKept(Version version) const {
  const std::uint64_t earlier = config_.late.apply ? config_.late.versions_max : 0;
  return version - std::min(version, earlier);
}

void RoundMachine::Impl::On(const CheckpointDone& done) {
  AUTOLOCO_CHECK(checkpoints_under_way_ > 0);
  checkpoints_under_way_--;
  if (done.status.ok()) {
    // What the one before covers is twice stored now, and need not be replayed any more.
    if (checkpoint_stored_) Emit(DropSpooledBefore{FirstRoundKept(*checkpoint_stored_)});
    checkpoint_stored_ = done.version;
    Record(CheckpointRecord{done.version});
  } else {
    Decide(DecisionKind::kRun, Reason::kCheckpointFailed, {}, std::string(done.status.message()));
    if (ending_ && done.version == state_.version) {
      ending_ = Ending{1, Reason::kCheckpointFailed, std::string(done.status.message())};
    }
  }
}

}  // namespace autoloco::server
