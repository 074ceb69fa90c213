#include "worker/core/worker_machine.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "worker/core/verdict.h"

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

std::string Text(const absl::Status& status) { return std::string(status.message()); }

std::string Paused(const absl::Status& status, absl::Duration pause) {
  return absl::StrCat(status.ToString(), "; next attempt in ",
                      absl::FormatDuration(absl::Trunc(pause, absl::Milliseconds(1))));
}

}  // namespace

WorkerMachine::WorkerMachine(const MachineConfig& config, absl::Time now)
    : config_(config), now_(now), link_(config, now), heartbeat_at_(now), base_(config), push_(config) {
  identity_.run_id = config.run_id;
}

void WorkerMachine::Step(absl::Time now, const Event& event, std::vector<Effect>* effects) {
  AUTOLOCO_CHECK(now >= now_);
  now_ = now;
  if (finished_) return;
  effects_ = effects;
  std::visit([this](const auto& concrete) { On(concrete); }, event);
  if (leaving_) {
    AdvanceLeaving();
  } else {
    Advance();
  }
  effects_ = nullptr;
}

std::optional<absl::Time> WorkerMachine::NextDeadline() const {
  if (finished_) return std::nullopt;
  std::optional<absl::Time> next;
  const auto consider = [&next](std::optional<absl::Time> time) {
    if (time && (!next || *time < *next)) next = time;
  };
  consider(push_.NextDeadline());
  if (leaving_) {
    consider(leaving_->deadline);
    if (push_.holds()) consider(leaving_->push_until);
    if (leaving_->goodbye_until && *leaving_->goodbye_until > now_) consider(leaving_->goodbye_until);
    return next;
  }
  consider(link_.NextDeadline());
  consider(base_.NextDeadline(now_));
  if (link_.up()) consider(heartbeat_at_);
  return next;
}

WorkerPhase WorkerMachine::phase() const {
  if (base_.pulling() && !EngineBusy()) return ready_ ? WorkerPhase::kPulling : WorkerPhase::kJoining;
  if (work_) {
    switch (work_->stage) {
      case Stage::kPulling: return WorkerPhase::kPulling;
      case Stage::kEvaluating: return WorkerPhase::kEvaluating;
      case Stage::kTraining: return WorkerPhase::kTraining;
    }
  }
  if (push_.holds()) return WorkerPhase::kPushing;
  return ready_ ? WorkerPhase::kWaiting : WorkerPhase::kJoining;
}

// ------------------------------------------------------------------------------------------------ the session

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
  DropOutdated(event.version);
}

void WorkerMachine::On(const Assigned& event) {
  if (leaving_ || !link_.up() || !link_.IsCurrent(event.session)) return;
  const Assignment& assignment = event.assignment;
  ready_ = true;
  assigned_ = true;
  if (work_ && !work_->cancelled && work_->assignment == assignment) {
    work_->confirmed = true;
    next_.reset();
    return;
  }
  if (push_.holds() && push_.assignment() == assignment) {
    push_.Resume();
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
    case Verdict::kStop: Leave(kExitRefused, Text(status), false); break;
    case Verdict::kRebase:
    case Verdict::kRetry: AddNote(NoteKind::kDisconnected, 0, Paused(status, pause), true); break;
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

// ------------------------------------------------------------------------------------------------ work

void WorkerMachine::On(const Prepared& event) {
  preparation_ = Preparation::kDone;
  if (!event.status.ok() && !leaving_) Leave(ExitCodeOfPreparation(event.status), Text(event.status), false);
}

void WorkerMachine::On(const PullEnded& event) {
  if (!base_.OnEnded(event) || leaving_) return;
  if (event.status.ok()) {
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
    case Verdict::kStop: Leave(kExitRefused, Text(event.status), false); return;
    case Verdict::kRebase:
      if (work_ && work_->stage == Stage::kPulling) CancelWorkInProgress(event.status.message());
      break;
    case Verdict::kRetry: break;
  }
  AddNote(NoteKind::kPullFailed, work_ ? work_->assignment.round : server_version_,
          Paused(event.status, base_.PauseAfterFailure(now_)), true);
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
    Leave(kExitFailed, absl::StrCat("evaluation of version ", event.round, " failed: ", Text(event.status)), false);
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
  const Work work = *work_;
  work_.reset();
  if (work.cancelled || leaving_) {
    effects_->push_back(DropDelta{.round = event.round});
  } else if (!event.status.ok()) {
    Leave(kExitFailed, absl::StrCat("training of round ", event.round, " failed: ", Text(event.status)), false);
  } else if (!event.non_finite.empty()) {
    Leave(kExitFailed, absl::StrCat("the delta of round ", event.round, " is not finite: ", event.non_finite), false);
  } else {
    push_.Begin(work.assignment, !work.confirmed, effects_);
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
  if (work_ && work_->assignment.round < version) {
    CancelWorkInProgress(absl::StrCat("its round has closed, version ", version, " is current"));
  }
  push_.OnRoundClosed(version);
  if (push_.parked() && push_.assignment().round < version) push_.Drop(effects_);
}

// ------------------------------------------------------------------------------------------------ push

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
  if (accepted) done_ = assignment;
  push_.Drop(effects_);
  if (outcome == PushOutcome::kNonFinite) {
    Leave(kExitFailed, absl::StrCat("the server refused the delta of round ", assignment.round, ": ", reason), false);
  }
}

void WorkerMachine::PushRefused(const absl::Status& status) {
  const Round round = push_.assignment().round;
  switch (JudgePush(status)) {
    case Verdict::kRejoin: Rejoin(status.message()); return;
    case Verdict::kStop:
      push_.Drop(effects_);
      Leave(kExitRefused, Text(status), false);
      return;
    case Verdict::kRebase:
      AddNote(NoteKind::kDropped, round, Text(status), true);
      push_.Drop(effects_);
      return;
    case Verdict::kRetry: AddNote(NoteKind::kPushFailed, round, Paused(status, push_.Pause(now_)), true); return;
  }
}

// ------------------------------------------------------------------------------------------------ the shell

void WorkerMachine::On(const StopRequested& event) {
  if (!leaving_) Leave(kExitDone, event.reason, true);
}

void WorkerMachine::On(const TimerFired&) {}

// ------------------------------------------------------------------------------------------------ going on

void WorkerMachine::Advance() {
  link_.Advance(now_, identity_, effects_);
  if (link_.GaveUp(now_)) {
    Leave(kExitGaveUp,
          absl::StrCat("the server could not be reached for ", absl::FormatDuration(config_.connect_timeout)), false);
    AdvanceLeaving();
    return;
  }
  AdvanceJoin();
  AdvanceWork();
  push_.Advance(now_, identity_, &next_ticket_, effects_);
  AdvanceHeartbeat();
}

void WorkerMachine::AdvanceJoin() {
  if (!link_.up()) return;
  if (preparation_ == Preparation::kNotYet) {
    preparation_ = Preparation::kRunning;
    effects_->push_back(Prepare{});
  }
  if (preparation_ != Preparation::kDone || ready_) return;
  if (base_checked_) {
    ready_ = true;
    effects_->push_back(SendReady{.session = link_.session(), .identity = identity_, .version = *base_.held()});
    return;
  }
  if (EngineBusy() && work_->cancelled) return;
  if (!base_.CanStart(now_)) return;
  base_.Start(next_ticket_++, identity_, std::nullopt, EngineBusy(), effects_);
}

void WorkerMachine::AdvanceWork() {
  if (next_ && !work_ && !base_.pulling()) {
    work_ = Work{.assignment = *next_};
    next_.reset();
    AddNote(NoteKind::kAssigned, work_->assignment.round,
            absl::StrCat(work_->assignment.inner_steps, " steps from inner step ", work_->assignment.first_inner_step));
  }
  if (!work_ || work_->stage != Stage::kPulling) return;
  if (base_.held() == work_->assignment.round) {
    StartNextStage();
  } else if (base_.CanStart(now_)) {
    base_.Start(next_ticket_++, identity_, work_->assignment.round, false, effects_);
  }
}

void WorkerMachine::StartNextStage() {
  if (work_->assignment.evaluation_parts > 0) {
    work_->stage = Stage::kEvaluating;
    effects_->push_back(StartEvaluation{.assignment = work_->assignment});
  } else if (work_->assignment.inner_steps > 0) {
    work_->stage = Stage::kTraining;
    effects_->push_back(StartTraining{.assignment = work_->assignment});
  } else {
    done_ = work_->assignment;
    work_.reset();
  }
}

void WorkerMachine::AdvanceHeartbeat() {
  if (link_.up() && (now_ >= heartbeat_at_ || evaluation_unsent_)) SendProgressNow();
}

void WorkerMachine::SendProgressNow() {
  SendProgress progress{.session = link_.session(),
                        .identity = identity_,
                        .phase = phase(),
                        .round = server_version_,
                        .evaluation = std::nullopt};
  if (work_) {
    progress.round = work_->assignment.round;
  } else if (push_.holds()) {
    progress.round = push_.assignment().round;
  }
  if (evaluation_unsent_) progress.evaluation = evaluation_;
  evaluation_unsent_ = false;
  effects_->push_back(std::move(progress));
  heartbeat_at_ = now_ + heartbeat_;
}

// ------------------------------------------------------------------------------------------------ leaving

void WorkerMachine::Leave(int exit_code, std::string reason, bool finish_push) {
  if (leaving_) return;
  AddNote(NoteKind::kLeaving, 0, reason, exit_code != kExitDone);
  leaving_ = Leaving{.exit_code = exit_code,
                     .reason = std::move(reason),
                     .deadline = now_ + config_.leave,
                     .push_until = finish_push ? now_ + config_.leave / 2 : now_,
                     .goodbye_until = std::nullopt};
  next_.reset();
  if (work_) CancelWorkInProgress(leaving_->reason);
  base_.Cancel(effects_);
  if (push_.parked()) push_.Drop(effects_);
}

void WorkerMachine::AdvanceLeaving() {
  if (push_.holds() && now_ < leaving_->push_until) {
    push_.Advance(now_, identity_, &next_ticket_, effects_);
    return;
  }
  push_.Drop(effects_);
  if (!leaving_->goodbye_until) {
    if (link_.up()) {
      leaving_->goodbye_until = std::min(now_ + config_.control_timeout, leaving_->deadline);
      effects_->push_back(SendGoodbye{.session = link_.session(), .identity = identity_, .reason = leaving_->reason});
    } else {
      leaving_->goodbye_until = now_;
      link_.Close(effects_);
    }
  }
  if (!link_.down() && now_ < *leaving_->goodbye_until) return;
  const bool engine_busy = EngineBusy() || preparation_ == Preparation::kRunning;
  if (engine_busy && now_ < leaving_->deadline) return;
  link_.Close(effects_);
  finished_ = true;
  effects_->push_back(Finish{.exit_code = leaving_->exit_code, .reason = leaving_->reason});
}

void WorkerMachine::AddNote(NoteKind kind, Round round, std::string text, bool problem) {
  effects_->push_back(Note{.kind = kind, .round = round, .text = std::move(text), .problem = problem});
}

}  // namespace autoloco::worker
