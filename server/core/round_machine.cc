// One step of the machine, and what it waits for. Its other files hold the sessions, the pushes, the rounds, the end of
// the run, and what of it all is recorded.
#include "server/core/round_machine.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "server/core/round_machine_impl.h"

namespace autoloco::server {

RoundMachine::RoundMachine(const CoreConfig& config, const CoreState& state, absl::Time now)
    : impl_(std::make_unique<Impl>(config, state, now)) {}
RoundMachine::~RoundMachine() = default;
void RoundMachine::Step(absl::Time now, const Event& event, std::vector<Effect>* effects) {
  impl_->Step(now, event, effects);
}
std::optional<absl::Time> RoundMachine::NextDeadline() const { return impl_->NextDeadline(); }
RunStatus RoundMachine::Status() const { return impl_->Status(); }
CoreState RoundMachine::DurableState() const { return impl_->DurableState(); }
const std::vector<RoundRecord>& RoundMachine::History() const { return impl_->History(); }

RoundMachine::Impl::Impl(const CoreConfig& config, const CoreState& state, absl::Time now)
    : config_(config), now_(now), state_(state.run), evaluations_(state.run.evaluations), speeds_(config.speed) {
  waiting_since_ = now;
  Restore(state);
}

void RoundMachine::Impl::Step(absl::Time now, const Event& event, std::vector<Effect>* effects) {
  AUTOLOCO_CHECK(now >= now_);
  now_ = now;
  if (const auto* stored = std::get_if<RecordsStored>(&event)) outbox_.Stored(stored->sequence, effects);
  if (std::exchange(commit_again_, false)) Emit(StartCommit{*round_.decision});
  timer_fired_ = std::holds_alternative<TimerFired>(event);
  std::visit([this](const auto& one) { On(one); }, event);
  Advance();
  if (std::exchange(run_changed_, false)) Record(RunRecord{state_, participants_, data_});
  for (auto& change : ledger_.TakeRecords()) records_.push_back(std::move(change));
  outbox_.Add(std::exchange(records_, {}), std::exchange(effects_, {}), effects);
}

// Leases expire here only, and rounds close by their deadline in this step only: the shell posts TimerFired after the
// events that were waiting, so that a server that was held up does not take silent workers for dead before it has read
// what they sent.
void RoundMachine::Impl::On(const TimerFired&) { ExpireLeases(); }

void RoundMachine::Impl::On(const ShutdownRequested& shutdown) {
  if (shutting_down_) return;
  shutting_down_ = true;
  shutdown_text_ = shutdown.reason;
}

void RoundMachine::Impl::Advance() {
  if (ended_) {
    FinishIfAllWereTold();
    return;
  }
  if (shutting_down_ && !ending_ && phase_ != RunPhase::kCommitting) {
    End({0, Reason::kShutdown, shutdown_text_});
  }
  if (ending_) {
    EndIfStored();
    return;
  }
  if (phase_ == RunPhase::kWaiting && state_.inner_steps_done >= config_.interval.total_inner_steps) {
    if (evaluated_) {
      EndCompleted();  // a run that is over was started again
      return;
    }
    StartFinishing();
  }
  CloseRoundIfDone();
  TellDeadline();
  OpenRoundIfReady();
  FinishIfEvaluated();
  UpdateWaiting();
  if (waiting_since_ && now_ - *waiting_since_ >= config_.join_timeout) {
    End({75, Reason::kJoinTimeout, absl::StrCat(WaitingText(), " for ", absl::FormatDuration(config_.join_timeout))});
  }
}

// ------------------------------------------------------------------------------------------------------- waiting

// Starts or stops the clock of the join timeout.
void RoundMachine::Impl::UpdateWaiting() {
  bool lacking = phase_ == RunPhase::kWaiting;
  if (config_.strict && phase_ == RunPhase::kTraining) {
    for (const auto& [name, entry] : round_.entries) lacking = lacking || IsMissing(name, entry);
  }
  if (!lacking) {
    waiting_since_.reset();
    waiting_text_.clear();
    return;
  }
  if (!waiting_since_) waiting_since_ = now_;
  std::string text = WaitingText();
  if (text == waiting_text_) return;
  waiting_text_ = text;
  Decide(DecisionKind::kRun, Reason::kWaitingForWorkers, {}, std::move(text));
}

std::string RoundMachine::Impl::WaitingText() const {
  if (phase_ == RunPhase::kTraining) {
    std::vector<std::string> missing;
    for (const auto& [name, entry] : round_.entries) {
      if (IsMissing(name, entry)) missing.push_back(name);
    }
    if (missing.empty()) return "waiting for its workers to come back";
    return absl::StrCat("strict run waiting for ", absl::StrJoin(missing, ", "));
  }
  std::uint32_t ready = 0;
  for (const auto& [name, member] : members_.all()) {
    ready += Membership::IsEligible(member, now_, config_.disconnect_grace) ? 1 : 0;
  }
  const std::uint32_t needed = WorkersNeeded();
  return absl::StrCat("waiting for ", needed > ready ? needed - ready : 0, " more of ", needed, " workers");
}

std::optional<absl::Time> RoundMachine::Impl::NextDeadline() const {
  std::optional<absl::Time> next = members_.NextDeadline(config_.lease, absl::Hours(1));
  const auto consider = [&next](std::optional<absl::Time> time) {
    if (time && (!next || *time < *next)) next = time;
  };
  if (commit_again_) return now_;
  if (ended_) {
    for (const auto& [name, member] : members_.all()) {
      const bool waits = !finished_ && MayStillAsk(member) && !member.restored;
      if (waits) consider(member.disconnected_at + config_.disconnect_grace);
    }
    return next;
  }
  // A finished run that was started again: nothing will come, it only has to end.
  if (phase_ == RunPhase::kWaiting && state_.inner_steps_done >= config_.interval.total_inner_steps) return now_;
  consider(Deadline().at);
  if (waiting_since_) consider(*waiting_since_ + config_.join_timeout);
  if (phase_ == RunPhase::kFinishing) consider(finish_deadline_);
  return next;
}

void RoundMachine::Impl::Decide(DecisionKind kind, Reason reason, WorkerId worker, std::string text) {
  Emit(Decision{kind, reason, state_.version, std::move(worker), std::move(text)});
}

}  // namespace autoloco::server
