// Rounds: opening, closing, committing, the end of the run. The other two files of RoundMachine::Impl hold the sessions
// and the pushes.
#include "server/core/round_machine.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "server/core/interval_policy.h"
#include "server/core/round_control.h"
#include "server/core/round_machine_impl.h"

namespace autoloco::server {

RoundMachine::RoundMachine(const CoreConfig& config, const CoreSnapshot& snapshot, absl::Time now)
    : impl_(std::make_unique<Impl>(config, snapshot, now)) {}
RoundMachine::~RoundMachine() = default;
void RoundMachine::Step(absl::Time now, const Event& event, std::vector<Effect>* effects) {
  impl_->Step(now, event, effects);
}
std::optional<absl::Time> RoundMachine::NextDeadline() const { return impl_->NextDeadline(); }
RunStatus RoundMachine::Status() const { return impl_->Status(); }
const std::vector<RoundRecord>& RoundMachine::History() const { return impl_->History(); }

RoundMachine::Impl::Impl(const CoreConfig& config, const CoreSnapshot& snapshot, absl::Time now)
    : config_(config), now_(now), state_(snapshot), evaluations_(snapshot.evaluations) {
  if (state_.version > 0) {
    checkpoint_started_ = checkpoint_stored_ = state_.version;
  }
  // Incarnations given out after the snapshot are not known: the shell says from where on none has been.
  state_.next_incarnation = std::max(state_.next_incarnation, config_.first_incarnation);
  waiting_since_ = now;
}

void RoundMachine::Impl::Step(absl::Time now, const Event& event, std::vector<Effect>* effects) {
  AUTOLOCO_CHECK(now >= now_);
  now_ = now;
  effects_ = effects;
  std::visit([this](const auto& one) { On(one); }, event);
  Advance();
  effects_ = nullptr;
}

// Leases expire here only: the shell posts TimerFired after the events that were waiting, so that a server that was
// held up does not take silent workers for dead before it has read what they sent.
void RoundMachine::Impl::On(const TimerFired&) { ExpireLeases(); }

void RoundMachine::Impl::On(const ShutdownRequested& shutdown) {
  if (Stopping()) return;
  shutting_down_ = true;
  shutdown_text_ = shutdown.reason;
}

void RoundMachine::Impl::Advance() {
  if (ended_) return;
  if (shutting_down_ && !ending_ && phase_ != RunPhase::kCommitting) {
    ReleaseDeliveries();
    End({0, Reason::kShutdown, shutdown_text_});
  }
  if (ending_) {
    EndIfStored();
    return;
  }
  if (phase_ == RunPhase::kWaiting && state_.inner_steps_done >= config_.interval.total_inner_steps) {
    StartFinishing();  // a finished run that was started again
  }
  CloseRoundIfDone();
  OpenRoundIfReady();
  FinishIfEvaluated();
  UpdateWaiting();
  if (waiting_since_ && now_ - *waiting_since_ >= config_.join_timeout) {
    ReleaseDeliveries();
    End({75, Reason::kJoinTimeout, absl::StrCat(WaitingText(), " for ", absl::FormatDuration(config_.join_timeout))});
  }
}

// ------------------------------------------------------------------------------------------------------- opening

std::uint32_t RoundMachine::Impl::WorkersNeeded() const {
  const bool first = state_.version == 0 && state_.rounds_aborted == 0;
  return first ? std::max(config_.start_workers, config_.min_workers) : config_.min_workers;
}

void RoundMachine::Impl::OpenRoundIfReady() {
  if (phase_ != RunPhase::kWaiting) return;
  const std::vector<Member*> eligible = members_.Eligible(now_, config_.disconnect_grace);
  if (eligible.size() < WorkersNeeded()) return;
  StartTraining(eligible);
}

void RoundMachine::Impl::StartTraining(const std::vector<Member*>& members) {
  before_round_ = state_;
  phase_ = RunPhase::kTraining;
  round_ = OpenRound{};
  round_.number = state_.version;
  const IntervalDecision decision = DecideInterval(config_.interval, state_.interval, state_.inner_steps_done);
  round_.inner_steps = decision.steps;
  round_.record = OpenRecord(round_.number, state_.inner_steps_done, decision);
  interval_text_ = absl::StrCat(ReasonName(decision.reason), ": ", decision.text);
  round_.opened_at = now_;
  std::vector<std::string> names;
  for (Member* member : members) {
    names.push_back(member->id.name);
    RoundEntry& entry = round_.entries[member->id.name];
    entry.incarnation = member->id.incarnation;
    entry.assignment = NextAssignment(member->id.name, round_.inner_steps);
  }
  if (config_.strict && participants_.empty()) participants_.insert(names.begin(), names.end());
  BeginEvaluation(static_cast<std::uint32_t>(members.size()));
  Decide(DecisionKind::kInterval, decision.reason, {},
         absl::StrCat(decision.steps, " inner steps: ", decision.text));
  Decide(DecisionKind::kRound, Reason::kOpened, {},
         absl::StrCat(round_.inner_steps, " inner steps for ", absl::StrJoin(names, ", ")));
  for (const Member* member : members) {
    if (member->session != 0) Emit(SendAssignment{member->session, round_.entries[member->id.name].assignment});
  }
}

Assignment RoundMachine::Impl::NextAssignment(const std::string& worker, std::uint32_t inner_steps) {
  std::uint64_t& cursor = config_.shared_data ? state_.next_sample : state_.next_sample_by_worker[worker];
  Assignment assignment;
  assignment.round = state_.version;
  assignment.inner_steps = inner_steps;
  assignment.first_inner_step = state_.inner_steps_done;
  assignment.first_sample = cursor;
  assignment.sample_count = std::uint64_t{inner_steps} * config_.batch_size;
  cursor += assignment.sample_count;
  return assignment;
}

// Shares the evaluation of the current version out to the entries of the round.
void RoundMachine::Impl::BeginEvaluation(std::uint32_t parts) {
  if (!config_.evaluate) return;
  evaluations_.Begin(state_.version, state_.inner_steps_done, parts);
  std::uint32_t part = 0;
  for (auto& [name, entry] : round_.entries) {
    entry.assignment.evaluation_part = part++;
    entry.assignment.evaluation_parts = parts;
  }
}

void RoundMachine::Impl::FinishEvaluation() {
  const std::optional<EvaluationPoint> point = evaluations_.Finish();
  state_.evaluations = evaluations_.history();
  if (point) Emit(EvaluationReady{*point});
}

// ------------------------------------------------------------------------------------------------------- closing

// Whether the worker can no longer deliver for this entry.
bool RoundMachine::Impl::IsMissing(const std::string& name, const RoundEntry& entry) const {
  if (entry.delivered) return false;
  if (entry.rejected) return true;
  const Member* member = members_.Find(name);
  return member == nullptr || !member->alive || member->id.incarnation != entry.incarnation;
}

void RoundMachine::Impl::CloseRoundIfDone() {
  if (phase_ != RunPhase::kTraining) return;
  std::vector<std::string> missing;
  std::vector<std::string> awaited;
  for (const auto& [name, entry] : round_.entries) {
    if (entry.delivered) continue;
    (IsMissing(name, entry) ? missing : awaited).push_back(name);
  }
  if (missing.empty() && awaited.empty()) {
    CloseRound(Reason::kAllDelivered, absl::StrCat(round_.entries.size(), " deltas"));
  } else if (config_.strict) {
    return;
  } else if (round_.DeliveredCount() == 0) {
    if (awaited.empty()) AbortRound();
  } else if (awaited.empty()) {
    CloseRound(Reason::kOthersGone, absl::StrCat("without ", absl::StrJoin(missing, ", ")));
  } else if (const auto deadline = GraceDeadline(); deadline && now_ >= *deadline) {
    CloseRound(Reason::kDisconnectGrace, absl::StrCat("without ", absl::StrJoin(awaited, ", ")));
  }
}

// When the round closes without those it still awaits: only when some delta is there and all of the awaited have broken
// sessions and no push under way.
std::optional<absl::Time> RoundMachine::Impl::GraceDeadline() const {
  if (phase_ != RunPhase::kTraining || config_.strict || round_.DeliveredCount() == 0) return std::nullopt;
  std::optional<absl::Time> latest;
  for (const auto& [name, entry] : round_.entries) {
    if (entry.delivered || IsMissing(name, entry)) continue;
    const Member* member = members_.Find(name);
    if (member->session != 0 || HasPendingPush(name)) return std::nullopt;
    const absl::Time due = std::max(round_.last_delivery_at, member->disconnected_at) + config_.disconnect_grace;
    if (!latest || due > *latest) latest = due;
  }
  return latest;
}

void RoundMachine::Impl::CloseRound(Reason reason, std::string text) {
  phase_ = RunPhase::kCommitting;
  Decide(DecisionKind::kClose, reason, {}, std::move(text));
  CommitPlan plan = PlanCommit(config_.outer, EndsWithThisRound(), &round_);
  for (const CommitPlan::LeftOutDelta& left_out : plan.left_out) {
    Decide(DecisionKind::kClose, Reason::kLeftOut, {left_out.worker, round_.entries[left_out.worker].incarnation},
           absl::StrCat("its delta is not part of the sum: ", left_out.why));
    Emit(DropSpooled{left_out.push});
  }
  Emit(std::move(plan.commit));
}

// REQUIRES: a round is open or committing.
bool RoundMachine::Impl::EndsWithThisRound() const {
  return state_.inner_steps_done + round_.inner_steps >= config_.interval.total_inner_steps;
}

void RoundMachine::Impl::AbortRound() {
  const std::string text = "every assigned worker is gone and none delivered";
  Decide(DecisionKind::kRound, Reason::kAborted, {}, text);
  for (const auto& [name, entry] : round_.entries) {
    const Member* member = members_.Find(name);
    if (member != nullptr && member->session != 0) Emit(SendAbort{member->session, round_.number, text});
  }
  const Incarnation next_incarnation = state_.next_incarnation;
  state_ = before_round_;
  state_.next_incarnation = next_incarnation;
  state_.rounds_aborted++;
  register_.Forget(round_.number);
  round_.entries.clear();
  phase_ = RunPhase::kWaiting;
}

// The deltas of a round that will not be committed.
void RoundMachine::Impl::ReleaseDeliveries() {
  for (auto& [name, entry] : round_.entries) {
    if (entry.delivered) Emit(DropSpooled{round_.KeyOf(name, entry)});
  }
  if (phase_ == RunPhase::kTraining) {
    const Incarnation next_incarnation = state_.next_incarnation;
    state_ = before_round_;
    state_.next_incarnation = next_incarnation;
  }
  round_.entries.clear();
}

void RoundMachine::Impl::On(const CommitDone& done) {
  if (phase_ != RunPhase::kCommitting || done.round != round_.number) return;
  FinishEvaluation();  // with the parts that came
  last_applied_ = round_.record.contributors;
  FinishRecord(done.stats, now_ - round_.opened_at, &round_);
  const bool over = EndsWithThisRound();
  for (const auto& [name, entry] : round_.entries) {
    if (entry.share == 0) continue;
    state_.worker_inner_steps += entry.report.inner_steps;
    if (Member* member = members_.Find(name)) member->tokens += entry.report.tokens;
  }
  state_.version = round_.number + 1;
  state_.inner_steps_done += round_.inner_steps;
  ObserveRound(config_.interval, round_.record, &state_.interval);
  state_.history.push_back(round_.record);
  register_.Trim(round_.number);
  Emit(RoundCommitted{round_.number, last_applied_, static_cast<std::uint32_t>(round_.entries.size()),
                      now_ - round_.opened_at, round_.last_delivery_at - round_.first_delivery_at, done.params_digest,
                      done.stats, round_.record});
  for (const auto& [name, member] : members_.all()) {
    if (member.alive && member.ready && member.session != 0) {
      Emit(SendRoundClosed{member.session, round_.number, state_.version, done.params_digest});
    }
  }
  round_.entries.clear();
  phase_ = RunPhase::kWaiting;
  const bool due = config_.checkpoint_every_rounds != 0 && state_.version % config_.checkpoint_every_rounds == 0;
  if (due && !over) StartCheckpointOf();
}

// ------------------------------------------------------------------------------------------------------- ending

void RoundMachine::Impl::StartFinishing() {
  phase_ = RunPhase::kFinishing;
  finish_deadline_ = now_ + config_.finish_timeout;
  round_ = OpenRound{};
  round_.number = state_.version;
  if (!config_.evaluate) return;
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
  round_.entries.clear();
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
  Emit(RunFinished{ending_->exit_code, completed, ending_->text});
}

void RoundMachine::Impl::StartCheckpointOf() {
  checkpoint_started_ = state_.version;
  checkpoints_under_way_++;
  Emit(StartCheckpoint{state_});
}

void RoundMachine::Impl::On(const CheckpointDone& done) {
  AUTOLOCO_CHECK(checkpoints_under_way_ > 0);
  checkpoints_under_way_--;
  if (done.status.ok()) {
    checkpoint_stored_ = done.version;
  } else {
    Decide(DecisionKind::kRun, Reason::kCheckpointFailed, {}, std::string(done.status.message()));
    if (ending_ && done.version == state_.version) {
      ending_ = Ending{1, Reason::kCheckpointFailed, std::string(done.status.message())};
    }
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
  if (ended_) return next;
  // A finished run that was started again: nothing will come, it only has to end.
  if (phase_ == RunPhase::kWaiting && state_.inner_steps_done >= config_.interval.total_inner_steps) return now_;
  consider(GraceDeadline());
  if (waiting_since_) consider(*waiting_since_ + config_.join_timeout);
  if (phase_ == RunPhase::kFinishing) consider(finish_deadline_);
  return next;
}

void RoundMachine::Impl::Decide(DecisionKind kind, Reason reason, WorkerId worker, std::string text) {
  Emit(Decision{kind, reason, state_.version, std::move(worker), std::move(text)});
}

}  // namespace autoloco::server
