// The interval in work: what pulls, evaluation, training and encoding ended with.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "worker/core/verdict.h"
#include "worker/core/worker_machine.h"

namespace autoloco::worker {
namespace {

int ExitCodeOfPreparation(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied: return kExitRefused;
    default: return kExitFailed;
  }
}

}  // namespace

void WorkerMachine::On(const Prepared& event) {
  preparation_ = Preparation::kDone;
  if (!event.status.ok() && !leaving_)
    Leave(ExitCodeOfPreparation(event.status), std::string(event.status.message()), false);
}

void WorkerMachine::On(const PullEnded& event) {
  if (!base_.OnEnded(event, now_) || leaving_) return;
  if (event.status.ok()) {
    PullServed(event);
    return;
  }
  switch (Judge(event.status)) {
    case Verdict::kRejoin: Rejoin(event.status.message()); return;
    case Verdict::kStop: Leave(kExitRefused, std::string(event.status.message()), false); return;
    case Verdict::kRebase:
    case Verdict::kRetry: break;
  }
  AddNote(NoteKind::kPullFailed, work_ ? work_->assignment.round : server_version_,
          TextOfPause(event.status, base_.Pause(now_)), true);
}

void WorkerMachine::PullServed(const PullEnded& event) {
  const bool foreign =
      event.probe ? !event.confirmed : event.confirmed && !push_.StartsFrom(event.version, event.digest);
  if (push_.parked() && foreign) {
    AddNote(NoteKind::kDropped, push_.assignment().round, "its delta starts from other parameters than the server's",
            true);
    push_.Drop(effects_);
  }
  if (!event.confirmed) {
    if (event.probe) {
      CancelWorkInProgress("it starts from other parameters than the server's");
    } else {
      AddNote(NoteKind::kPulled, event.version, absl::StrCat(PullFormName(event.form), ", not complete yet"));
    }
    return;
  }
  AddNote(NoteKind::kPulled, event.version, absl::StrCat(PullFormName(event.form), ", digest ", event.digest));
  const bool current = event.form == PullForm::kNothing || event.form == PullForm::kFull;
  if (current || event.version >= server_version_) base_checked_ = true;
  // The server is not behind what it assigns, unless it has lost versions: it says so over the session then.
  if (current && work_ && event.version < work_->assignment.round) base_.Pause(now_);
}

void WorkerMachine::On(const EvaluationEnded& event) {
  if (!work_ || work_->stage != Stage::kEvaluating || work_->assignment.round != event.round) return;
  const bool cancelled = work_->cancelled;
  if (event.status.ok() && !leaving_) {
    evaluation_ = event.part;
    evaluation_unsent_ = true;
    AddNote(NoteKind::kEvaluated, event.round,
            absl::StrCat(event.part.tokens, " tokens, ",
                         event.part.loss_sum / static_cast<double>(std::max<std::uint64_t>(1, event.part.tokens)),
                         " nats a token"));
    if (link_.up()) SendProgressNow();
  }
  if (cancelled || leaving_) {
    work_.reset();
  } else if (!event.status.ok()) {
    work_.reset();
    Leave(kExitFailed,
          absl::StrCat("evaluation of version ", event.round, " failed: ", std::string(event.status.message())), false);
  } else if (work_->assignment.inner_steps > 0) {
    work_->stage = Stage::kTraining;
    effects_->push_back(StartTraining{.assignment = work_->assignment});
  } else {
    done_ = work_->assignment;
    work_.reset();
  }
}

void WorkerMachine::On(const TrainingEnded& event) {
  if (!work_ || work_->stage != Stage::kTraining || work_->assignment.round != event.round) return;
  const bool unwanted = work_->cancelled || (leaving_ && !work_->ends_early);
  if (!unwanted && event.status.ok()) {
    work_->stage = Stage::kSettling;
    return;
  }
  const bool ends_early = work_->ends_early;
  work_.reset();
  if (unwanted) return;
  if (ends_early && absl::IsCancelled(event.status)) {
    AddNote(NoteKind::kDropped, event.round, "too few steps were done to be sent");
  } else {
    Leave(kExitFailed,
          absl::StrCat("training of round ", event.round, " failed: ", std::string(event.status.message())), false);
  }
}

void WorkerMachine::On(const DeltaEncoded& event) {
  if (!work_ || work_->stage != Stage::kEncoding || work_->assignment.round != event.round) return;
  const Work work = *work_;
  work_.reset();
  if (work.cancelled || (leaving_ && !work.ends_early)) {
    effects_->push_back(DropDelta{.round = event.round});
  } else if (!event.status.ok()) {
    Leave(kExitFailed,
          absl::StrCat("the delta of round ", event.round, " was not encoded: ", std::string(event.status.message())),
          false);
  } else {
    push_.Begin({.owner = work.owner, .assignment = work.assignment, .digest = event.digest}, base_.held_digest(),
                !work.confirmed, work.ends_early);
  }
}

void WorkerMachine::CancelWorkInProgress(absl::string_view reason) {
  if (!work_ || work_->cancelled) return;
  AddNote(NoteKind::kDropped, work_->assignment.round, std::string(reason), true);
  switch (work_->stage) {
    case Stage::kPulling:  // the pull goes on: the next interval starts from what it leads to
    case Stage::kSettling: work_.reset(); return;
    case Stage::kEncoding: work_->cancelled = true; return;
    case Stage::kEvaluating:
    case Stage::kTraining:
      work_->cancelled = true;
      effects_->push_back(CancelWork{});
      return;
  }
}

void WorkerMachine::DropOutdated(Version version) {
  if (next_ && next_->round < version) next_.reset();
  // Where late deltas count, what has begun to train goes on past the end of its round.
  const Version oldest = version - std::min<Version>(version, late_versions_max_);
  if (work_ && work_->assignment.round < (work_->stage >= Stage::kTraining ? oldest : version)) {
    CancelWorkInProgress(absl::StrCat("its round has closed, version ", version, " is current"));
  }
  push_.OnRoundClosed(oldest);
  if (push_.parked() && push_.assignment().round < version) push_.Drop(effects_);
}

}  // namespace autoloco::worker
