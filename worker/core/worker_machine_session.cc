// The session: joining, reconnecting, what the server says.
#include <string>

#include "absl/strings/str_cat.h"
#include "worker/core/verdict.h"
#include "worker/core/worker_machine.h"

namespace autoloco::worker {

void WorkerMachine::On(const Welcomed& event) {
  if (leaving_ || !link_.opening() || !link_.IsCurrent(event.session)) return;
  if (!identity_.run_id.empty() && event.identity.run_id != identity_.run_id) {
    link_.Close(effects_);
    Leave(kExitRefused, absl::StrCat("the server runs ", event.identity.run_id, ", want run ", identity_.run_id),
          false);
    return;
  }
  link_.OnWelcomed(now_);
  heartbeat_ = event.heartbeat;
  heartbeat_at_ = now_;
  server_version_ = event.version;
  partial_intervals_ = event.partial_intervals;
  late_versions_max_ = event.late_versions_max;
  if (event.identity == identity_) {
    AddNote(NoteKind::kReconnected, event.version, absl::StrCat("incarnation ", identity_.incarnation));
    evaluation_unsent_ = evaluation_.has_value();
  } else {
    identity_ = event.identity;
    assigned_ = false;
    base_checked_ = false;
    done_.reset();
    evaluation_.reset();
    evaluation_unsent_ = false;
    AddNote(NoteKind::kJoined, event.version,
            absl::StrCat("run ", identity_.run_id, " incarnation ", identity_.incarnation));
  }
  ready_ = assigned_;
  JudgeHeld(event);
  DropOutdated(event.version);
  push_.Wake(now_);
  base_.Wake();
}

void WorkerMachine::JudgeHeld(const Welcomed& event) {
  if (!named_ || !push_.holds() || push_.delta() != *named_) return;
  if (event.send_held) {
    push_.Resume();
    return;
  }
  if (event.held_outcome) {
    AddNote(NoteKind::kPushAnswered, named_->assignment.round,
            absl::StrCat(PushOutcomeName(*event.held_outcome), ", as incarnation ", named_->owner.incarnation),
            event.held_outcome != PushOutcome::kAccepted);
    if (event.held_outcome == PushOutcome::kAccepted) counted_ = named_->assignment.round;
    push_.Drop(effects_);
    return;
  }
  AddNote(NoteKind::kDropped, named_->assignment.round,
          absl::StrCat("the delta kept of incarnation ", named_->owner.incarnation, " is not sent: ",
                       event.held_reason.empty() ? "the server does not wait for it" : event.held_reason),
          true);
  push_.Drop(effects_);
}

void WorkerMachine::On(const Assigned& event) {
  if (leaving_ || !link_.up() || !link_.IsCurrent(event.session)) return;
  const Assignment& assignment = event.assignment;
  ready_ = true;
  assigned_ = true;
  if (work_ && !work_->cancelled && work_->assignment == assignment) {
    work_->confirmed = true;
    work_->owner = identity_;
    next_.reset();
    return;
  }
  if (push_.holds() && push_.assignment() == assignment) {
    push_.Adopt(identity_);
    return;
  }
  if (done_ == assignment || next_ == assignment) return;
  // Another interval of the same round (it was aborted and opened again), or a parked delta that is not asked for.
  if (push_.parked() || (push_.holds() && push_.assignment().round == assignment.round)) push_.Drop(effects_);
  if (work_) CancelWorkInProgress(absl::StrCat("round ", assignment.round, " was assigned instead"));
  next_ = assignment;
}

void WorkerMachine::On(const RoundClosed& event) {
  if (leaving_ || !link_.IsCurrent(event.session)) return;
  server_version_ = event.version;
  DropOutdated(event.version);
}

void WorkerMachine::On(const Aborted& event) {
  if (leaving_ || !link_.IsCurrent(event.session)) return;
  if (next_ && next_->round == event.round) next_.reset();
  if (work_ && work_->assignment.round == event.round) CancelWorkInProgress(event.reason);
  if (push_.holds() && push_.assignment().round == event.round) push_.Drop(effects_);
  if (counted_ == event.round) counted_.reset();
}

void WorkerMachine::On(const Drained& event) {
  if (leaving_ || !link_.IsCurrent(event.session)) return;
  if (event.run_done) {
    Leave(kExitDone, event.reason.empty() ? "run done" : event.reason, false);
  } else {
    AddNote(NoteKind::kDisconnected, 0, absl::StrCat("the server shuts down: ", event.reason));
  }
}

void WorkerMachine::On(const SessionEnded& event) {
  if (!link_.IsCurrent(event.session)) return;
  const absl::Duration pause = link_.OnEnded(now_);
  if (leaving_) return;
  const absl::Status status =
      event.status.ok() ? absl::UnavailableError("the server closed the session") : event.status;
  switch (Judge(status)) {
    case Verdict::kRejoin: Rejoin(status.message()); break;
    case Verdict::kStop: Leave(kExitRefused, std::string(status.message()), false); break;
    case Verdict::kRebase:
    case Verdict::kRetry: AddNote(NoteKind::kDisconnected, 0, TextOfPause(status, pause), true); break;
  }
}

void WorkerMachine::Rejoin(absl::string_view reason) {
  if (identity_.incarnation == 0) return;
  AddNote(NoteKind::kRejoining, 0, std::string(reason), true);
  identity_.incarnation = 0;
  ready_ = assigned_ = base_checked_ = false;
  link_.Close(effects_);
  base_.Cancel(effects_);
  next_.reset();
  if (work_ && work_->stage == Stage::kPulling) work_.reset();
  if (work_) work_->confirmed = false;
  push_.Park(effects_);
}

}  // namespace autoloco::worker
