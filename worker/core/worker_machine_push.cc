// The delta on its way: what became of it.
#include <string>

#include "absl/strings/str_cat.h"
#include "worker/core/verdict.h"
#include "worker/core/worker_machine.h"

namespace autoloco::worker {

void WorkerMachine::On(const PushEnded& event) {
  if (!push_.OnEnded(event.ticket)) return;
  if (event.status.ok()) {
    PushAnswered(event.outcome, event.reason);
  } else {
    PushRefused(event.status);
  }
}

void WorkerMachine::On(const PushStatusEnded& event) {
  if (!push_.OnEnded(event.ticket)) return;
  if (!event.status.ok()) {
    PushRefused(event.status);
  } else if (event.known) {
    PushAnswered(event.outcome, event.reason);
  } else if (push_.round_closed()) {
    AddNote(NoteKind::kDropped, push_.assignment().round, "its round closed before the delta arrived", true);
    push_.Drop(effects_);
  } else {
    push_.SendAgain();
  }
}

void WorkerMachine::PushAnswered(PushOutcome outcome, const std::string& reason) {
  const Assignment assignment = push_.assignment();
  const bool accepted = outcome == PushOutcome::kAccepted;
  AddNote(NoteKind::kPushAnswered, assignment.round,
          reason.empty() ? PushOutcomeName(outcome) : absl::StrCat(PushOutcomeName(outcome), ": ", reason), !accepted);
  if (accepted) {
    done_ = assignment;
    counted_ = assignment.round;
  }
  push_.Drop(effects_);
  if (outcome == PushOutcome::kNonFinite) {
    Leave(kExitFailed, absl::StrCat("the server refused the delta of round ", assignment.round, ": ", reason), false);
  }
}

void WorkerMachine::PushRefused(const absl::Status& status) {
  const Round round = push_.assignment().round;
  Verdict verdict = JudgePush(status);
  // What the server thinks of an earlier incarnation says nothing of this one.
  if (HeldOfEarlierLife() && verdict != Verdict::kRetry) verdict = Verdict::kRebase;
  switch (verdict) {
    case Verdict::kRejoin: Rejoin(status.message()); return;
    case Verdict::kStop:
      push_.Drop(effects_);
      Leave(kExitRefused, std::string(status.message()), false);
      return;
    case Verdict::kRebase:
      AddNote(NoteKind::kDropped, round, std::string(status.message()), true);
      push_.Drop(effects_);
      return;
    case Verdict::kRetry: AddNote(NoteKind::kPushFailed, round, TextOfPause(status, push_.Pause(now_)), true); return;
  }
}

}  // namespace autoloco::worker
