// Rounds among unequal and unreliable workers: how much each one does, when the round stops waiting, who joins in the
// middle, which delta is too large to count, who is evicted. The numbers come from plain functions (round_deadline.h,
// worker_speed.h, norm_admission.h); here they meet the round.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/core/round_machine_impl.h"

namespace autoloco::server {

// ------------------------------------------------------------------------------------------------------- opening

// Steps of each worker of the round that opens, in the order of `names`.
std::vector<WorkerSpeeds::Share> RoundMachine::Impl::ShareOut(const std::vector<std::string>& names) const {
  return speeds_.StepsForAll(names, round_.inner_steps, config_.interval.total_inner_steps - state_.inner_steps_done);
}

// The names, with the steps of those that do not do `steps`.
std::string RoundMachine::Impl::SharesText(const std::vector<WorkerSpeeds::Share>& shares, std::uint32_t steps) {
  return absl::StrJoin(shares, ", ", [steps](std::string* text, const WorkerSpeeds::Share& share) {
    absl::StrAppend(text, share.worker);
    if (share.steps != steps) absl::StrAppend(text, " (", share.steps, ")");
  });
}

// ------------------------------------------------------------------------------------------------------- late work

// Whether `member` is at work on an earlier round and goes on with it in the round that opens.
bool RoundMachine::Impl::CarryOver(const Member& member) {
  const auto it = carried_.find(member.id.name);
  if (it == carried_.end() || it->second.entry.incarnation != member.id.incarnation) return false;
  round_.entries[member.id.name] = it->second.entry;
  round_.times[member.id.name] = it->second.times;
  return true;
}

// At the end of a round: what of it may still come and count in the next one. After state_.version has risen.
void RoundMachine::Impl::KeepLateWork() {
  carried_.clear();
  if (!config_.late.apply) return;
  for (const auto& [name, entry] : round_.entries) {
    if (entry.delivered || IsMissing(name, entry)) continue;
    if (state_.version - entry.assignment.round > config_.late.versions_max) continue;
    LateWork& late = carried_[name];
    late = {entry, round_.TimesOf(name)};
    late.entry.evaluation.reset();  // of a version that is past
    late.entry.assignment.evaluation_part = late.entry.assignment.evaluation_parts = 0;
  }
}

// Late work is not waited for, unless there is nothing else.
bool RoundMachine::Impl::IsWaitedFor(const RoundEntry& entry) const {
  if (!round_.IsLate(entry)) return true;
  for (const auto& [name, other] : round_.entries) {
    if (!round_.IsLate(other)) return false;
  }
  return true;
}

// The entry of the open round that takes this delta.
const RoundEntry* RoundMachine::Impl::EntryOf(const PushKey& key) const {
  if (phase_ != RunPhase::kTraining) return nullptr;
  const auto it = round_.entries.find(key.worker.name);
  if (it == round_.entries.end() || it->second.assignment.round != key.round) return nullptr;
  return &it->second;
}

// Whether no round is open that could take this delta, and the next one will.
bool RoundMachine::Impl::WillTakeLate(const PushKey& key) const {
  if (!config_.late.apply) return false;
  if (phase_ == RunPhase::kWaiting) {
    const auto it = carried_.find(key.worker.name);
    return it != carried_.end() && it->second.entry.incarnation == key.worker.incarnation &&
           it->second.entry.assignment.round == key.round;
  }
  const auto it = round_.entries.find(key.worker.name);
  return phase_ == RunPhase::kCommitting && it != round_.entries.end() && !it->second.delivered &&
         !it->second.rejected && it->second.incarnation == key.worker.incarnation &&
         it->second.assignment.round == key.round && state_.version + 1 - key.round <= config_.late.versions_max;
}

// ------------------------------------------------------------------------------------------------------- joining

// A worker that is ready while a round is open gets work that ends with the others', if enough is left for it.
void RoundMachine::Impl::JoinOpenRound(const Member& member) {
  if (phase_ != RunPhase::kTraining || config_.strict || round_.restored || !member.ready) return;
  const std::string& name = member.id.name;
  if (round_.entries.count(name) != 0) return;  // of this life, or of a former one: a successor has the next round
  const std::uint32_t steps = speeds_.FirstInterval(name, round_.inner_steps, now_, ExpectedClose());
  if (steps == 0) {
    Decide(DecisionKind::kRound, Reason::kNextRound, member.id,
           absl::StrCat("too little is left of round ", round_.number, ", or nothing is known of its end"));
    return;
  }
  RoundEntry& entry = round_.entries[name];
  entry.incarnation = member.id.incarnation;
  entry.assignment = NextAssignment(name, steps);
  OpenLease(member.id, entry.assignment);
  round_.times[name].assigned_at = now_;
  run_changed_ = true;  // a lease was given out
  RecordEntry(name);
  Decide(DecisionKind::kRound, Reason::kJoinsRound, member.id,
         absl::StrCat(steps, " inner steps of the others' ", round_.inner_steps));
  if (member.session != 0) Emit(SendAssignment{member.session, entry.assignment});
}

// When the last of those at work is expected to deliver, the deadline at the latest.
std::optional<absl::Time> RoundMachine::Impl::ExpectedClose() const {
  std::vector<WorkerSpeeds::Running> running;
  for (const auto& [name, entry] : round_.entries) {
    if (entry.delivered || IsMissing(name, entry) || !IsWaitedFor(entry)) continue;
    const OpenRound::Times times = round_.TimesOf(name);
    running.push_back({name, entry.assignment.inner_steps, times.assigned_at, times.steps_done, times.reported_at});
  }
  const std::optional<absl::Time> close = speeds_.ExpectedClose(running);
  const std::optional<absl::Time> deadline = Deadline().at;
  return close && deadline ? std::min(*close, *deadline) : close;
}

// ------------------------------------------------------------------------------------------------------- closing

AwaitedWork RoundMachine::Impl::AwaitedOf(const std::string& name, const RoundEntry& entry) const {
  const OpenRound::Times times = round_.TimesOf(name);
  AwaitedWork work;
  work.assigned_at = times.assigned_at;
  if (entry.delivered) {
    const bool whole = entry.report.inner_steps >= entry.assignment.inner_steps;
    work.state = whole ? AwaitedWork::State::kDelivered : AwaitedWork::State::kEndedEarly;
    work.delivered_at = times.delivered_at;
    return work;
  }
  if (IsMissing(name, entry)) {
    work.state = AwaitedWork::State::kMissing;
    return work;
  }
  const Member* member = members_.Find(name);
  // After a restart nobody has a session; for the time of its lease that is no sign of a worker's death.
  const bool reachable = member->session != 0 || member->restored || HasPendingPush(name);
  work.state = reachable ? AwaitedWork::State::kConnected : AwaitedWork::State::kDisconnected;
  work.disconnected_at = member->disconnected_at;
  return work;
}

// When the open round closes without those it still awaits. A strict round never does.
RoundDeadline RoundMachine::Impl::Deadline() const {
  if (phase_ != RunPhase::kTraining || config_.strict) return {};
  DeadlineSettings settings = config_.deadline;
  settings.disconnect_grace = config_.disconnect_grace;
  if (round_.restored) settings.quorum_share = 1;  // times from before the restart are not known
  std::vector<AwaitedWork> work;
  for (const auto& [name, entry] : round_.entries) {
    if (IsWaitedFor(entry)) work.push_back(AwaitedOf(name, entry));
  }
  return ComputeDeadline(settings, round_.opened_at, work);
}

// Says once a round that it has a deadline, and why it is then.
void RoundMachine::Impl::TellDeadline() {
  if (round_.deadline_told) return;
  const RoundDeadline deadline = Deadline();
  if (!deadline.at || deadline.reason == Reason::kDisconnectGrace) return;
  round_.deadline_told = true;
  Decide(DecisionKind::kDeadline, deadline.reason, {}, deadline.text);
}

// ------------------------------------------------------------------------------------------------------- admission

NormVerdict RoundMachine::Impl::JudgeNormOf(const PendingPush& push, double norm) const {
  NormInput input;
  input.norm = norm;
  input.learning_rate_sum = push.report.learning_rate_sum;
  input.learning_rate_sum_most = config_.interval.schedule.learning_rate * push.report.inner_steps;
  input.values = config_.layout.value_count();
  return JudgeNorm(config_.norm, state_.history, input);
}

// What a delivery and a heartbeat say of a worker's speed.
void RoundMachine::Impl::LearnFromDelivery(const std::string& name, const RoundEntry& entry) {
  const auto times = round_.times.find(name);
  if (times == round_.times.end()) return;  // assigned before a restart
  times->second.delivered_at = now_;
  speeds_.ObserveDelivery(name, entry.report, now_ - times->second.assigned_at);
  Member* const member = members_.Find(name);
  const std::optional<double> step_seconds = speeds_.StepSeconds(name);
  if (member == nullptr || !step_seconds) return;
  member->step_seconds = *step_seconds;
  member->overhead_seconds = speeds_.OverheadSeconds(name);
  RecordMember(*member);
}

void RoundMachine::Impl::LearnFromProgress(const std::string& name, const Progress& progress) {
  speeds_.ObserveProgress(name, progress);
  const auto entry = round_.entries.find(name);
  const auto times = round_.times.find(name);
  if (entry == round_.entries.end() || times == round_.times.end()) return;
  if (progress.phase != WorkerPhase::kTraining || progress.round != entry->second.assignment.round) return;
  times->second.steps_done = progress.steps_done;
  times->second.reported_at = now_;
}

// ------------------------------------------------------------------------------------------------------- eviction

// Being evicted is why a member is not alive: it survives a restart with the member.
void RoundMachine::Impl::On(const EvictAsked& asked) {
  Emit(AnswerEvict{asked.ticket, asked.readmit ? Readmit(asked.worker) : Evict(asked.worker)});
}

absl::Status RoundMachine::Impl::Evict(const std::string& name) {
  Member* member = members_.Find(name);
  if (member == nullptr) return absl::NotFoundError(absl::StrCat("no worker is known by the name ", name));
  if (config_.strict) {
    return absl::FailedPreconditionError("a strict run needs all its workers; stop the run instead");
  }
  const std::string text =
      absl::StrCat("evicted by the operator; `autoloco evict ", name, " --readmit` lets it in again");
  if (member->session != 0) Emit(CloseSession{member->session, absl::PermissionDeniedError(text)});
  Decide(DecisionKind::kMembership, Reason::kEvicted, member->id, "");
  Leave(member, Reason::kEvicted, text);
  return absl::OkStatus();
}

absl::Status RoundMachine::Impl::Readmit(const std::string& name) {
  Member* member = members_.Find(name);
  if (member == nullptr || member->alive || member->reason != Reason::kEvicted) {
    return absl::NotFoundError(absl::StrCat(name, " is not evicted"));
  }
  Decide(DecisionKind::kMembership, Reason::kReadmitted, member->id, "");
  Leave(member, Reason::kReadmitted, "may join again");
  return absl::OkStatus();
}

}  // namespace autoloco::server
