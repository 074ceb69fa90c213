// The interval in work: what pulls, evaluation and training ended with.
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
  if (!base_.OnEnded(event) || leaving_) return;
  if (event.status.ok()) {
    if (push_.parked() && !push_.StartsFrom(event.version, event.digest)) {
      AddNote(NoteKind::kDropped, push_.assignment().round, "its delta starts from other parameters than the server's",
              true);
      push_.Drop(effects_);
    }
    if (event.differs) {
      CancelWorkInProgress("it starts from other parameters than the server's");
    } else {
      base_checked_ = true;
      AddNote(NoteKind::kPulled, event.version, absl::StrCat("digest ", event.digest));
    }
    return;
  }
  switch (Judge(event.status)) {
    case Verdict::kRejoin: Rejoin(event.status.message()); return;
    case Verdict::kStop: Leave(kExitRefused, std::string(event.status.message()), false); return;
    case Verdict::kRebase:
      if (work_ && work_->stage == Stage::kPulling) CancelWorkInProgress(event.status.message());
      break;
    case Verdict::kRetry: break;
  }
  AddNote(NoteKind::kPullFailed, work_ ? work_->assignment.round : server_version_,
          TextOfPause(event.status, base_.PauseAfterFailure(now_)), true);
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
    effects_->push_back(StartTraining{.assignment = work_->assignment, .identity = work_->owner});
  } else {
    done_ = work_->assignment;
    work_.reset();
  }
}

void WorkerMachine::On(const TrainingEnded& event) {
  if (!work_ || work_->stage != Stage::kTraining || work_->assignment.round != event.round) return;
  const Work work = *work_;
  work_.reset();
  if (work.cancelled || (leaving_ && !work.ends_early)) {
    effects_->push_back(DropDelta{.round = event.round});
  } else if (work.ends_early && absl::IsCancelled(event.status)) {
    AddNote(NoteKind::kDropped, event.round, "too few steps were done to be sent");
  } else if (!event.status.ok()) {
    Leave(kExitFailed,
          absl::StrCat("training of round ", event.round, " failed: ", std::string(event.status.message())), false);
  } else if (!event.non_finite.empty()) {
    Leave(kExitFailed, absl::StrCat("the delta of round ", event.round, " is not finite: ", event.non_finite), false);
  } else {
    push_.Begin({.owner = work.owner, .assignment = work.assignment, .digest = event.digest}, base_.held_digest(),
                !work.confirmed, work.ends_early, effects_);
  }
}

void WorkerMachine::CancelWorkInProgress(absl::string_view reason) {
  if (!work_ || work_->cancelled) return;
  AddNote(NoteKind::kDropped, work_->assignment.round, std::string(reason), true);
  if (work_->stage == Stage::kPulling) {
    base_.Cancel(effects_);
    work_.reset();
  } else {
    work_->cancelled = true;
    effects_->push_back(CancelWork{});
  }
}

void WorkerMachine::DropOutdated(Version version) {
  if (next_ && next_->round < version) next_.reset();
  // Where late deltas count, what has begun to train goes on past the end of its round.
  const Version oldest = version - std::min<Version>(version, late_versions_max_);
  if (work_ && work_->assignment.round < (work_->stage == Stage::kTraining ? oldest : version)) {
    CancelWorkInProgress(absl::StrCat("its round has closed, version ", version, " is current"));
  }
  push_.OnRoundClosed(oldest);
  if (push_.parked() && push_.assignment().round < version) push_.Drop(effects_);
}

}  // namespace autoloco::worker
