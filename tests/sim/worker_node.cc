#include "tests/sim/worker_node.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "tests/sim/convert.h"

namespace autoloco::sim {
namespace {

constexpr absl::Duration kStallTimeout = absl::Seconds(60);

std::uint64_t HashOf(const std::string& text) { return Hash64(std::as_bytes(std::span(text))); }

}  // namespace

WorkerNode::WorkerNode(const Tools& tools, const WorkerPlan& plan, WorkerDisk* disk)
    : Process(tools.world),
      tools_(tools),
      plan_(plan),
      disk_(disk),
      dice_(tools.scenario->seed ^ HashOf(plan.name), 105 + disk->lineage),
      data_(tools.scenario->core.shared_data ? tools.scenario->data_seed
                                             : tools.scenario->data_seed ^ HashOf(plan.name)) {}

void WorkerNode::Start() {
  Begin();
  exit_code_.reset();
  timer_at_.reset();
  calls_.clear();
  by_ticket_.clear();
  stream_ = session_ = 0;
  base_ = Base(BroadcastCoding(tools_.scenario->core.method), tools_.bug == Bug::kBroadcastTwice);
  trained_.reset();
  delta_ = disk_->saved;
  residual_ = delta_ ? delta_->before.residual : TrainerState().residual;
  next_residual_ = delta_ ? delta_->after.residual : TrainerState().residual;
  pushes_of_delta_ = 0;
  cancelled_end_.reset();
  training_.reset();
  named_.reset();
  ++job_;
  tools_.checkers->OnRestarted(disk_->lineage);
  if (!disk_->saved) tools_.checkers->OnStateLost(disk_->lineage);
  worker::MachineConfig config = tools_.scenario->machine;
  config.jitter_seed = HashOf(plan_.name) + life();
  if (delta_) config.saved = worker::HeldDelta{delta_->owner, delta_->assignment, delta_->digest};
  machine_ = std::make_unique<worker::WorkerMachine>(config, LocalNow());
  client_ = tools_.network->Attach(this, plan_.name);
  tools_.trace->Line(plan_.name, "start");
  Run(absl::ZeroDuration(), [this] { Step(worker::TimerFired{}); });
}

void WorkerNode::Kill(bool silently) {
  if (!running()) return;
  tools_.trace->Line(plan_.name, "killed");
  tools_.network->Detach(client_, silently);
  if (tools_.faults->Strikes(Fault::kWorkerDiskLost)) disk_->saved.reset();
  effects_left_.reset();
  End();
}

void WorkerNode::Terminate() {
  tools_.trace->Line(plan_.name, "terminated");
  Post(absl::ZeroDuration(), worker::StopRequested{"SIGTERM"});
}

absl::Time WorkerNode::ToLocal(absl::Time time) const {
  return absl::UnixEpoch() + plan_.clock_offset + (time - absl::UnixEpoch()) * plan_.clock_rate;
}

absl::Time WorkerNode::FromLocal(absl::Time local) const {
  return absl::UnixEpoch() + (local - absl::UnixEpoch() - plan_.clock_offset) / plan_.clock_rate;
}

// ---------------------------------------------------------------------------------------------------- stepping

void WorkerNode::Post(absl::Duration delay, worker::Event event) {
  Run(delay, [this, event = std::move(event)] { Step(event); });
}

void WorkerNode::Step(const worker::Event& event) {
  std::vector<worker::Effect> effects;
  machine_->Step(LocalNow(), event, &effects);
  const std::uint64_t my_life = life();
  for (const worker::Effect& effect : effects) {
    if (effects_left_ && (*effects_left_)-- == 0) {
      tools_.faults->Count(Fault::kWorkerCrashAtEffect);
      Kill(tools_.faults->Strikes(Fault::kMachineLost));
    }
    if (life() != my_life) return;
    std::visit([this](const auto& one) { Do(one); }, effect);
    if (life() != my_life) return;
  }
  SetTimer();
}

void WorkerNode::SetTimer() {
  const std::optional<absl::Time> next = machine_->NextDeadline();
  if (!next) return;
  const absl::Time at = std::max(FromLocal(*next), world()->now()) + absl::Microseconds(50);
  if (timer_at_ && *timer_at_ <= at && *timer_at_ > world()->now()) return;
  timer_at_ = at;
  RunAt(at, [this, at] {
    if (timer_at_ == at) timer_at_.reset();
    const std::optional<absl::Time> due = machine_->NextDeadline();
    if (due && LocalNow() >= *due) {
      Step(worker::TimerFired{});
    } else {
      SetTimer();
    }
  });
}

// ---------------------------------------------------------------------------------------------------- session

server::Sender WorkerNode::SenderOf(const worker::Identity& identity) const {
  return {identity.run_id, {plan_.name, identity.incarnation}};
}

void WorkerNode::Do(const worker::OpenSession& effect) {
  session_ = effect.session;
  named_ = effect.held;
  server::HelloReceived hello{
      .session = 0, .sender = SenderOf(effect.identity), .protocol_version = tools_.scenario->core.protocol_version};
  if (effect.held) {
    const worker::HeldDelta& held = *effect.held;
    hello.held = server::HeldDelta{held.owner.run_id, held.owner.incarnation, held.assignment.round, 0, held.digest};
  }
  stream_ = tools_.network->OpenStream(client_, hello);
}

void WorkerNode::Do(const worker::CloseSession& effect) {
  if (effect.session == session_) tools_.network->CancelStream(stream_);
}

void WorkerNode::Do(const worker::SendReady& effect) {
  if (effect.session != session_) return;
  tools_.network->Send(stream_, server::ReadyReceived{.session = 0,
                                                      .sender = SenderOf(effect.identity),
                                                      .layout = ModelLayout(),
                                                      .version = effect.version,
                                                      .data_samples = 1000,
                                                      .data_hash = 7});
}

void WorkerNode::Do(const worker::SendProgress& effect) {
  if (effect.session != session_) return;
  server::Progress progress;
  progress.phase = ToServerPhase(effect.phase);
  progress.round = effect.round;
  if (effect.phase == worker::WorkerPhase::kTraining) {
    progress.steps_done = StepsDone();
    progress.tokens_per_second = kBatch * kTokensPerSample / absl::ToDoubleSeconds(plan_.step_time);
  }
  if (effect.evaluation) {
    progress.evaluation =
        server::EvaluationPart{effect.evaluation->version, effect.evaluation->loss_sum, effect.evaluation->tokens};
  }
  tools_.network->Send(stream_, server::ProgressReceived{0, SenderOf(effect.identity), progress});
}

void WorkerNode::Do(const worker::SendGoodbye& effect) {
  if (effect.session != session_) return;
  tools_.network->Send(stream_, server::GoodbyeReceived{0, SenderOf(effect.identity), effect.reason});
}

void WorkerNode::OnMessage(StreamId stream, const ToWorker& message) {
  Enter([this, stream, message] {
    if (stream != stream_) return;
    tools_.trace->Line(plan_.name, MessageName(message));
    if (const auto* welcomed = std::get_if<worker::Welcomed>(&message); welcomed != nullptr && named_) {
      const bool accepted = welcomed->held_outcome == worker::PushOutcome::kAccepted;
      if (accepted) Learned(named_->owner, named_->assignment.round, server::PushOutcome::kAccepted);
    }
    Step(std::visit(
        [this](auto one) {
          one.session = session_;
          return worker::Event(one);
        },
        message));
  });
}

void WorkerNode::OnStreamEnded(StreamId stream, const absl::Status& status) {
  Enter([this, stream, status] {
    if (stream == stream_) Step(worker::SessionEnded{session_, status});
  });
}

// ---------------------------------------------------------------------------------------------------- calls

template <typename StartEffect>
void WorkerNode::Call(const StartEffect& effect, Request request, absl::Duration limit) {
  const CallId call = tools_.network->StartCall(client_, std::move(request));
  calls_[call] = OpenCall{effect};
  by_ticket_[effect.ticket] = call;
  Run(limit, [this, call] {
    if (calls_.count(call) == 0) return;
    tools_.network->CancelCall(call);
    OnCallFailed(call, absl::DeadlineExceededError("no answer in time"));
  });
}

void WorkerNode::Cancel(Ticket ticket) {
  const auto it = by_ticket_.find(ticket);
  if (it == by_ticket_.end()) return;
  const CallId call = it->second;
  tools_.network->CancelCall(call);
  Run(absl::Milliseconds(1), [this, call] { OnCallFailed(call, absl::CancelledError("cancelled")); });
}

void WorkerNode::OnReply(CallId call, const Reply& reply) {
  Enter([this, call, reply] {
    const auto it = calls_.find(call);
    if (it == calls_.end()) return;
    const OpenCall open = std::move(it->second);
    calls_.erase(it);
    CallEnded(open, std::visit([](const auto& one) { return one.status; }, reply), &reply);
  });
}

void WorkerNode::OnCallFailed(CallId call, const absl::Status& status) {
  Enter([this, call, status] {
    const auto it = calls_.find(call);
    if (it == calls_.end()) return;
    const OpenCall open = std::move(it->second);
    calls_.erase(it);
    CallEnded(open, status, nullptr);
  });
}

void WorkerNode::CallEnded(const OpenCall& open, const absl::Status& status, const Reply* reply) {
  if (const auto* pull = std::get_if<worker::StartPull>(&open.effect)) {
    by_ticket_.erase(pull->ticket);
    PullDone(*pull, status, reply);
  } else if (const auto* push = std::get_if<worker::StartPush>(&open.effect)) {
    by_ticket_.erase(push->ticket);
    PushDone(*push, status, reply);
  } else {
    const auto& asked = std::get<worker::AskPushStatus>(open.effect);
    by_ticket_.erase(asked.ticket);
    AskDone(asked, status, reply);
  }
}

void WorkerNode::Do(const worker::StartPull& effect) {
  server::PullOpened pull;
  pull.sender = SenderOf(effect.identity);
  pull.header_only = effect.probe;
  base_.Describe(&pull);
  if (effect.probe) pull.part = {};
  Call(effect, pull, kStallTimeout);
}

void WorkerNode::PullDone(const worker::StartPull& effect, const absl::Status& status, const Reply* reply) {
  worker::PullEnded ended{.status = status, .probe = effect.probe};
  const auto* const pulled = reply == nullptr ? nullptr : &std::get<PullReply>(*reply);
  if (pulled != nullptr && effect.probe) {
    if (status.ok()) ended = base_.Compare(*pulled);
  } else if (pulled != nullptr && (status.ok() || !pulled->blocks.empty())) {
    const Values before = base_.values();
    ended = base_.Take(*pulled);
    if (tools_.bug == Bug::kStaleBase && ended.version % 4 == 3) base_.SetValues(before);
  } else if (absl::IsAborted(status)) {
    base_.Abandon();
  }
  ended.ticket = effect.ticket;
  tools_.trace->Line(plan_.name, "pulled", worker::PullFormName(ended.form), " ", ended.version, " ",
                     ended.confirmed ? "confirmed" : "", base_.mixed() ? "mixed" : "", ended.status.message());
  Step(ended);
}

void WorkerNode::Do(const worker::StartPush& effect) {
  if (!delta_ || delta_->assignment.round != effect.round) {
    tools_.checkers->Violate("push", absl::StrCat(plan_.name, " is to send round ", effect.round, ", holds another"));
    return;
  }
  if (tools_.bug == Bug::kResidualLost && pushes_of_delta_ > 0) next_residual_.assign(kValues, 0.0F);
  ++pushes_of_delta_;
  PushCall push;
  push.header.sender = SenderOf(effect.identity);
  push.header.round = effect.round;
  push.header.leaving = effect.leaving;
  push.header.payload_digest = delta_->digest;
  push.header.payload_bytes = delta_->payload.size();
  push.header.layout_hash = ModelLayout().hash();
  push.header.report = ToServerReport(delta_->report);
  push.payload = delta_->payload;
  tools_.checkers->OnSent({push.header.sender.worker, effect.round, 0}, disk_->lineage, *delta_);
  tools_.trace->Line(plan_.name, "push", "round ", effect.round, " digest ", delta_->digest);
  Call(effect, std::move(push), kStallTimeout);
}

void WorkerNode::PushDone(const worker::StartPush& effect, const absl::Status& status, const Reply* reply) {
  worker::PushEnded ended{.ticket = effect.ticket, .status = status, .outcome = {}, .reason = ""};
  if (status.ok()) {
    const auto& answer = std::get<PushReply>(*reply);
    ended.outcome = ToWorkerOutcome(answer.outcome);
    ended.reason = answer.reason;
    Learned(effect.identity, effect.round, answer.outcome);
  }
  Step(ended);
}

void WorkerNode::Do(const worker::AskPushStatus& effect) {
  server::PushStatusAsked asked;
  asked.sender = SenderOf(effect.identity);
  asked.round = effect.round;
  Call(effect, asked, tools_.scenario->machine.control_timeout);
}

void WorkerNode::AskDone(const worker::AskPushStatus& effect, const absl::Status& status, const Reply* reply) {
  worker::PushStatusEnded ended{.ticket = effect.ticket, .status = status, .known = false, .outcome = {}, .reason = ""};
  if (status.ok()) {
    const auto& answer = std::get<StatusReply>(*reply);
    ended.known = answer.known;
    ended.outcome = ToWorkerOutcome(answer.outcome);
    ended.reason = answer.reason;
    if (answer.known) Learned(effect.identity, effect.round, answer.outcome);
  }
  Step(ended);
}

void WorkerNode::Learned(const worker::Identity& identity, Round round, server::PushOutcome outcome) {
  tools_.checkers->OnOutcome({SenderOf(identity).worker, round, 0}, outcome == server::PushOutcome::kAccepted);
}

void WorkerNode::Do(const worker::DropDelta& effect) {
  tools_.trace->Line(plan_.name, "drop_delta", "round ", effect.round);
}

// ---------------------------------------------------------------------------------------------------- the engine

void WorkerNode::Do(const worker::Prepare&) {
  Post(absl::Milliseconds(dice_.Between(10.0, 400.0)), worker::Prepared{absl::OkStatus()});
}

void WorkerNode::Do(const worker::StartEvaluation& effect) {
  const std::uint64_t job = ++job_;
  const worker::Assignment assignment = effect.assignment;
  cancelled_end_ = worker::EvaluationEnded{assignment.round, absl::CancelledError("cancelled"), {}};
  Run(absl::Milliseconds(dice_.Between(20.0, 200.0)), [this, job, assignment] {
    if (job != job_) return;
    Step(worker::EvaluationEnded{assignment.round, absl::OkStatus(), Evaluate(base_.values(), assignment)});
  });
}

void WorkerNode::Do(const worker::StartTraining& effect) {
  const std::uint64_t job = ++job_;
  const worker::Assignment& assignment = effect.assignment;
  cancelled_end_ = worker::TrainingEnded{assignment.round, absl::CancelledError("cancelled")};
  training_ = Training{effect, DigestOf(base_.values()), world()->now()};
  absl::Duration duration = plan_.step_time * assignment.inner_steps * dice_.Between(0.97, 1.05);
  if (tools_.faults->Strikes(Fault::kStraggler)) duration *= dice_.Between(1.5, 5.0);
  Run(duration, [this, job, steps = assignment.inner_steps] {
    if (job == job_) FinishTraining(steps);
  });
}

std::uint32_t WorkerNode::StepsDone() const {
  if (!training_) return 0;
  const auto steps = static_cast<std::uint32_t>((world()->now() - training_->since) / plan_.step_time);
  return std::min(steps, training_->effect.assignment.inner_steps);
}

void WorkerNode::Do(const worker::EndTrainingEarly& effect) {
  if (!training_) return;  // it has just ended
  const std::uint32_t steps = StepsDone();
  if (steps == 0 || steps < effect.steps_min) {
    Do(worker::CancelWork{});
  } else {
    ++job_;
    FinishTraining(steps);
  }
}

TrainerState WorkerNode::StateFor(const worker::Assignment& assignment) const {
  if (!delta_) return TrainerState();
  return delta_->assignment.round >= assignment.round ? delta_->before : delta_->after;
}

void WorkerNode::FinishTraining(std::uint32_t steps) {
  const worker::Assignment assignment = training_->effect.assignment;
  if (DigestOf(base_.values()) != training_->base_digest) {
    tools_.checkers->Violate("base", absl::StrCat(plan_.name, ": the base changed under round ", assignment.round));
  }
  training_.reset();
  cancelled_end_.reset();
  // Beyond anything that training gives, or only beyond what the run's deltas have been.
  float scale = 1;
  if (tools_.faults->Strikes(Fault::kNormOutlier)) scale = dice_.Chance(0.5) ? 1000 : 20;
  trained_ = TrainInterval(base_.values(), assignment, steps, StateFor(assignment), data_,
                           absl::ToDoubleSeconds(plan_.step_time), scale);
  Step(worker::TrainingEnded{assignment.round, absl::OkStatus()});
}

// Encodes, and saves.
void WorkerNode::Do(const worker::StartEncoding& effect) {
  const Round round = effect.assignment.round;
  if (!trained_ || !(trained_->assignment == effect.assignment)) {
    tools_.checkers->Violate("encode",
                             absl::StrCat(plan_.name, " is to encode round ", round, ", has trained another"));
    return;
  }
  if (effect.previous_counts || tools_.bug == Bug::kResidualMoves) residual_ = next_residual_;
  delta_ = std::move(*trained_);
  trained_.reset();
  delta_->owner = effect.identity;
  EncodeDelta(residual_, &*delta_);
  next_residual_ = delta_->after.residual;
  pushes_of_delta_ = 0;
  tools_.checkers->OnTrained(plan_.name, disk_->lineage, *delta_);
  absl::Duration sync = absl::Milliseconds(dice_.Between(1.0, 20.0));
  if (tools_.faults->Strikes(Fault::kSlowSync)) sync = dice_.Between(absl::Milliseconds(100), absl::Seconds(5));
  if (tools_.faults->Strikes(Fault::kWorkerDiskTorn)) {
    Run(sync / 2, [this] {
      disk_->saved.reset();  // what is there does not have the digest it should have
      Kill(false);
    });
  }
  Run(sync, [this, round] {
    if (tools_.faults->Strikes(Fault::kWorkerWriteFailed)) {
      // It goes on, and starts from nothing should it crash before the next delta is saved.
      disk_->saved.reset();
      tools_.trace->Line(plan_.name, "save_failed", "round ", round);
    } else {
      disk_->saved = delta_;
    }
    Step(worker::DeltaEncoded{round, absl::OkStatus(), delta_->digest});
  });
}

void WorkerNode::Do(const worker::CancelWork&) {
  ++job_;
  training_.reset();
  if (cancelled_end_) Post(absl::Milliseconds(dice_.Between(0.1, 50.0)), *cancelled_end_);
}

// ---------------------------------------------------------------------------------------------------- the end

void WorkerNode::Do(const worker::Note& effect) {
  tools_.trace->Line(plan_.name, worker::NoteKindName(effect.kind), "round ", effect.round, " ", effect.text);
}

void WorkerNode::Do(const worker::Finish& effect) {
  tools_.trace->Line(plan_.name, "finished", effect.exit_code, " ", effect.reason);
  exit_code_ = effect.exit_code;
  tools_.network->Detach(client_, false);
  End();
}

}  // namespace autoloco::sim
