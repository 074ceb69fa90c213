#include "worker/runtime/run_loop.h"

#include <utility>
#include <variant>
#include <vector>

#include "common/base/check.h"
#include "common/base/log.h"

namespace autoloco::worker {

RunLoop::RunLoop(const MachineConfig& config, std::string worker_name, const Clock* clock, ProgressBoard* board)
    : worker_name_(std::move(worker_name)), clock_(clock), board_(board), machine_(config, clock->Now()) {}

void RunLoop::Post(Event event) {
  MutexLock lock(&mutex_);
  events_.push_back(std::move(event));
  arrived_.NotifyOne();
}

void RunLoop::PostWelcome(Welcomed event, RunSettings settings) {
  MutexLock lock(&mutex_);
  if (!settings_) settings_ = settings;
  if (*settings_ == settings) {
    events_.push_back(std::move(event));
  } else {
    events_.push_back(SessionEnded{.session = event.session,
                                   .status = absl::FailedPreconditionError(
                                       "the run's settings have changed since this worker joined: restart it")});
  }
  arrived_.NotifyOne();
}

std::optional<Event> RunLoop::Pop(std::optional<absl::Time> deadline) {
  MutexLock lock(&mutex_);
  while (events_.empty()) {
    if (!deadline) {
      arrived_.Wait(&mutex_);
      continue;
    }
    const absl::Duration left = *deadline - clock_->Now();
    if (left <= absl::ZeroDuration()) return std::nullopt;
    arrived_.WaitFor(&mutex_, left);
  }
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

int RunLoop::Run(Engine* engine, ServerConnection* connection) {
  engine_ = engine;
  connection_ = connection;
  std::vector<Effect> effects;
  Event event = TimerFired{};
  while (true) {
    if (const auto* pulled = std::get_if<PullEnded>(&event)) {
      if (!pulled->probe) engine_->BaseChanged();
    }
    effects.clear();
    machine_.Step(clock_->Now(), event, &effects);
    for (const Effect& effect : effects) std::visit([this](const auto& concrete) { Do(concrete); }, effect);
    board_->SetPhase(machine_.phase());
    if (exit_code_) return *exit_code_;
    event = Pop(machine_.NextDeadline()).value_or(TimerFired{});
  }
}

void RunLoop::Do(const OpenSession& effect) { connection_->OpenSession(effect.session, effect.identity, effect.held); }

void RunLoop::Do(const CloseSession& effect) { connection_->CloseSession(effect.session); }

void RunLoop::Do(const SendReady& effect) {
  connection_->SendReady(effect.session, {.identity = effect.identity,
                                          .layout = engine_->layout(),
                                          .version = effect.version,
                                          .data_samples = engine_->data_samples(),
                                          .data_hash = engine_->data_hash()});
}

void RunLoop::Do(const SendProgress& effect) {
  const ProgressNumbers numbers = board_->Read();
  connection_->SendProgress(effect.session, {.identity = effect.identity,
                                             .phase = effect.phase,
                                             .round = effect.round,
                                             .steps_done = numbers.round == effect.round ? numbers.steps_done : 0,
                                             .loss = numbers.loss,
                                             .tokens_per_second = numbers.tokens_per_second,
                                             .compute_share = numbers.compute_share,
                                             .evaluation = effect.evaluation});
}

void RunLoop::Do(const SendGoodbye& effect) {
  connection_->SendGoodbye(effect.session, effect.identity, effect.reason);
}

void RunLoop::Do(const Prepare& effect) {
  std::optional<RunSettings> settings;
  {
    MutexLock lock(&mutex_);
    settings = settings_;
  }
  AUTOLOCO_CHECK(settings.has_value());
  engine_->StartPrepare(*settings, effect.run_id);
}

void RunLoop::Do(const StartPull& effect) {
  connection_->StartPull({.ticket = effect.ticket,
                          .identity = effect.identity,
                          .probe = effect.probe,
                          .layout_hash = engine_->layout().hash(),
                          .broadcast = engine_->settings().broadcast.codec,
                          .base = engine_->base()});
}

void RunLoop::Do(const CancelPull& effect) { connection_->CancelPull(effect.ticket); }

void RunLoop::Do(const StartEvaluation& effect) { engine_->StartEvaluation(effect.assignment); }

void RunLoop::Do(const StartTraining& effect) { engine_->StartTraining(effect.assignment); }

void RunLoop::Do(const CancelWork&) { engine_->Cancel(); }

void RunLoop::Do(const EndTrainingEarly& effect) { engine_->EndTrainingEarly(effect.steps_min); }

void RunLoop::Do(const StartEncoding& effect) {
  engine_->StartEncoding(effect.assignment, effect.identity, effect.previous_counts);
}

void RunLoop::Do(const StartPush& effect) {
  std::shared_ptr<const EncodedDelta> delta = engine_->delta();
  AUTOLOCO_CHECK(delta != nullptr);
  AUTOLOCO_CHECK(delta->round == effect.round);
  connection_->StartPush(
      {.ticket = effect.ticket, .identity = effect.identity, .leaving = effect.leaving, .delta = std::move(delta)});
}

void RunLoop::Do(const AskPushStatus& effect) {
  connection_->AskPushStatus(effect.ticket, effect.identity, effect.round);
}

void RunLoop::Do(const CancelPush& effect) { connection_->CancelPush(effect.ticket); }

void RunLoop::Do(const DropDelta& effect) { engine_->DropDelta(effect.round); }

void RunLoop::Do(const Note& effect) {
  Log(effect.problem ? LogLevel::kWarning : LogLevel::kInfo, NoteKindName(effect.kind))
      .Add("worker", worker_name_)
      .Add("round", effect.round)
      .Add("reason", effect.text);
}

void RunLoop::Do(const Finish& effect) {
  Log(effect.exit_code == kExitDone ? LogLevel::kInfo : LogLevel::kError, "finished")
      .Add("worker", worker_name_)
      .Add("exit_code", effect.exit_code)
      .Add("reason", effect.reason);
  exit_code_ = effect.exit_code;
}

}  // namespace autoloco::worker
