#include "worker/core/worker_machine.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace autoloco::worker {

WorkerMachine::WorkerMachine(const MachineConfig& config, absl::Time now)
    : config_(config), now_(now), link_(config, now), heartbeat_at_(now), base_(config), push_(config) {
  identity_.run_id = config.run_id;
  if (config.saved) push_.Restore(*config.saved);
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
    if (!leaving_->goodbye_until) {
      consider(leaving_->deliver_until);
      if (link_.up()) consider(heartbeat_at_);
    }
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
      case Stage::kSettling:
      case Stage::kEncoding: return WorkerPhase::kPushing;
    }
  }
  if (push_.holds()) return WorkerPhase::kPushing;
  return ready_ ? WorkerPhase::kWaiting : WorkerPhase::kJoining;
}

// ------------------------------------------------------------------------------------------------ the shell

void WorkerMachine::On(const StopRequested& event) {
  if (!leaving_) Leave(kExitDone, event.reason, true);
}

void WorkerMachine::On(const TimerFired&) {}

// ------------------------------------------------------------------------------------------------ going on

void WorkerMachine::Advance() {
  const std::optional<HeldDelta> held = HeldOfEarlierLife();
  if (link_.Advance(now_, identity_, held, effects_)) named_ = held;
  if (link_.GaveUp(now_)) {
    Leave(kExitGaveUp,
          absl::StrCat("the server could not be reached for ", absl::FormatDuration(config_.connect_timeout)), false);
    AdvanceLeaving();
    return;
  }
  AdvanceJoin();
  AdvanceWork();
  push_.Advance(now_, &next_ticket_, effects_);
  AdvanceHeartbeat();
}

std::optional<HeldDelta> WorkerMachine::HeldOfEarlierLife() const {
  if (!push_.holds() || push_.delta().owner == identity_) return std::nullopt;
  return push_.delta();
}

void WorkerMachine::AdvanceJoin() {
  if (!link_.up()) return;
  if (preparation_ == Preparation::kNotYet) {
    preparation_ = Preparation::kRunning;
    effects_->push_back(Prepare{.run_id = identity_.run_id});
  }
  if (preparation_ != Preparation::kDone || ready_) return;
  if (base_checked_ && base_.held()) {
    // Ready says that nothing of an earlier life is on its way any more.
    if (HeldOfEarlierLife() && !push_.parked()) return;
    ready_ = true;
    effects_->push_back(SendReady{.session = link_.session(), .identity = identity_, .version = *base_.held()});
    return;
  }
  if (EngineBusy() && work_->cancelled) return;
  if (!base_.CanStart(now_)) return;
  base_.Start(next_ticket_++, identity_, EngineBusy(), effects_);
}

void WorkerMachine::AdvanceWork() {
  if (next_ && !work_ && !base_.probing()) {
    const Assignment& assignment = *next_;
    AddNote(NoteKind::kAssigned, assignment.round,
            absl::StrCat(assignment.inner_steps, " steps from inner step ", assignment.first_inner_step, ", samples ",
                         assignment.first_sample, " to ", assignment.first_sample + assignment.sample_count));
    work_ = Work{.assignment = assignment, .owner = identity_};
    next_.reset();
  }
  AdvanceSettling();
  if (!work_) CatchUp();
  if (!work_ || work_->stage != Stage::kPulling) return;
  if (base_.held() == work_->assignment.round) {
    StartNextStage();
  } else if (base_.held() && *base_.held() > work_->assignment.round) {
    CancelWorkInProgress(absl::StrCat("its round has closed, version ", *base_.held(), " was pulled"));
  } else if (base_.CanStart(now_)) {
    base_.Start(next_ticket_++, identity_, false, effects_);
  }
}

// Broadcasts that are left out now have to be passed later, when there is work to do.
void WorkerMachine::CatchUp() {
  const bool behind = !base_.held() || *base_.held() < server_version_;
  if (ready_ && link_.up() && behind && base_.follows() && base_.CanStart(now_)) {
    base_.Start(next_ticket_++, identity_, false, effects_);
  }
}

void WorkerMachine::AdvanceSettling() {
  if (!work_ || work_->stage != Stage::kSettling) return;
  push_.Hurry(now_, effects_);
  if (push_.holds()) return;
  work_->stage = Stage::kEncoding;
  effects_->push_back(StartEncoding{.assignment = work_->assignment,
                                    .identity = work_->owner,
                                    .previous_counts = counted_ && *counted_ < work_->assignment.round});
  counted_.reset();
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

bool WorkerMachine::CanSendPart() const {
  return work_ && work_->stage == Stage::kTraining && !work_->cancelled && work_->confirmed && partial_intervals_ &&
         link_.up();
}

bool WorkerMachine::CanSendWhole() const {
  return work_ && (work_->stage == Stage::kSettling || work_->stage == Stage::kEncoding) && !work_->cancelled &&
         work_->confirmed && link_.up();
}

void WorkerMachine::Leave(int exit_code, std::string reason, bool deliver) {
  if (leaving_) return;
  AddNote(NoteKind::kLeaving, 0, reason, exit_code != kExitDone);
  leaving_ = Leaving{.exit_code = exit_code,
                     .reason = std::move(reason),
                     .deadline = now_ + config_.leave,
                     .deliver_until = deliver ? now_ + config_.leave * 3 / 4 : now_,
                     .goodbye_until = std::nullopt};
  next_.reset();
  if (deliver && CanSendPart()) {
    work_->ends_early = true;
    const std::uint32_t steps = work_->assignment.inner_steps;
    effects_->push_back(EndTrainingEarly{.steps_min = (steps + kPartialShareDivisor - 1) / kPartialShareDivisor});
  } else if (deliver && CanSendWhole()) {
    work_->ends_early = true;
  } else if (work_) {
    CancelWorkInProgress(leaving_->reason);
  }
  base_.Cancel(effects_);
}

void WorkerMachine::AdvanceLeaving() {
  if (push_.parked()) push_.Drop(effects_);
  if ((push_.holds() || EndsEarly()) && now_ < leaving_->deliver_until) {
    AdvanceSettling();
    push_.Advance(now_, &next_ticket_, effects_);
    AdvanceHeartbeat();
    return;
  }
  if (EndsEarly()) CancelWorkInProgress(leaving_->reason);
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

std::string WorkerMachine::TextOfPause(const absl::Status& status, absl::Duration pause) {
  return absl::StrCat(status.ToString(), "; next attempt in ",
                      absl::FormatDuration(absl::Trunc(pause, absl::Milliseconds(1))));
}

}  // namespace autoloco::worker
