// Rounds: opening, closing, committing.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/core/interval_policy.h"
#include "server/core/round_control.h"
#include "server/core/round_machine_impl.h"

namespace autoloco::server {
namespace {

// Of `windows`, those that the assignment's part has: part, part + parts, ...
std::uint64_t PartOf(std::uint32_t windows, const Assignment& assignment) {
  if (windows <= assignment.evaluation_part) return 0;
  return (windows - assignment.evaluation_part - 1) / assignment.evaluation_parts + 1;
}

}  // namespace

// ------------------------------------------------------------------------------------------------------- opening

std::uint32_t RoundMachine::Impl::WorkersNeeded() const {
  if (config_.strict && !participants_.empty()) return static_cast<std::uint32_t>(participants_.size());
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
  phase_ = RunPhase::kTraining;
  BeginRound();
  const IntervalDecision decision = DecideInterval(config_.interval, state_.interval, state_.inner_steps_done);
  round_.inner_steps = decision.steps;
  round_.record = OpenRecord(round_.number, state_.inner_steps_done, decision);
  interval_text_ = TextOf(decision);
  std::vector<std::string> names;
  for (const Member* member : members) {
    if (!CarryOver(*member)) names.push_back(member->id.name);
  }
  carried_.clear();
  const std::vector<WorkerSpeeds::Share> shares = ShareOut(names);
  for (const WorkerSpeeds::Share& share : shares) {
    RoundEntry& entry = round_.entries[share.worker];
    entry.incarnation = members_.Find(share.worker)->id.incarnation;
    entry.assignment = NextAssignment(share.worker, share.steps);
    OpenLease({share.worker, entry.incarnation}, entry.assignment);
    round_.times[share.worker].assigned_at = now_;
  }
  if (config_.strict && participants_.empty()) participants_.insert(names.begin(), names.end());
  if (!names.empty()) BeginEvaluation(static_cast<std::uint32_t>(names.size()));
  RecordOpening();
  Decide(DecisionKind::kInterval, decision.reason, {}, absl::StrCat(decision.steps, " inner steps: ", decision.text));
  Decide(DecisionKind::kRound, Reason::kOpened, {},
         absl::StrCat(round_.inner_steps, " inner steps for ", SharesText(shares, round_.inner_steps)));
  for (const std::string& name : names) {
    const Member* member = members_.Find(name);
    if (member->session != 0) Emit(SendAssignment{member->session, round_.entries[name].assignment});
  }
}

void RoundMachine::Impl::OpenLease(const WorkerId& worker, const Assignment& assignment) {
  ledger_.Open({assignment.round, round_.attempt, worker}, assignment.sample_count * config_.tokens_per_sample);
}

// An empty round of the current version: RecordOpening once it has its entries.
void RoundMachine::Impl::BeginRound() {
  round_ = OpenRound{};
  round_.number = state_.version;
  round_.attempt = state_.rounds_aborted;
  round_.cursors_before = state_;
  round_.opened_at = now_;
  round_open_ = true;
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
  if (config_.evaluation_windows == 0) return;
  evaluations_.Begin(state_.version, state_.inner_steps_done, parts);
  std::uint32_t part = 0;
  for (auto& [name, entry] : round_.entries) {
    if (round_.IsLate(entry)) continue;
    entry.assignment.evaluation_part = part++;
    entry.assignment.evaluation_parts = parts;
  }
}

// A part that cannot be right does not count, and nobody waits for another one.
void RoundMachine::Impl::TakeEvaluation(const WorkerId& worker, EvaluationPart part) {
  const auto it = round_.entries.find(worker.name);
  if (it == round_.entries.end() || !evaluations_.Awaits(worker.name, part.version)) return;
  const Assignment& assignment = it->second.assignment;
  if (assignment.evaluation_parts == 0) return;
  const std::uint64_t windows = PartOf(config_.evaluation_windows, assignment);
  const absl::Status status = CheckPart(part, windows * config_.tokens_per_sample);
  if (!status.ok()) {
    Decide(
        DecisionKind::kAdmission, Reason::kEvaluationRefused, worker,
        absl::StrCat("its part of the held-out loss of version ", part.version, " does not count: ", status.message()));
    part = {.version = part.version, .loss_sum = 0, .tokens = 0};
  }
  evaluations_.Add(worker.name, part);
  it->second.evaluation = part;
  RecordEntry(worker.name);
  if (evaluations_.Complete()) FinishEvaluation();
}

void RoundMachine::Impl::FinishEvaluation() {
  if (!evaluations_.UnderWay()) return;
  const Version version = evaluations_.version();
  const std::optional<EvaluationPoint> point = evaluations_.Finish();
  state_.evaluations = evaluations_.history();
  if (point) {
    Record(EvaluationRecord{*point});
    Emit(EvaluationReady{*point});
  } else {
    Decide(DecisionKind::kRun, Reason::kNotEvaluated, {},
           absl::StrCat("the held-out loss of version ", version, " is not known: no part of it came that counts"));
  }
}

// ------------------------------------------------------------------------------------------------------- closing

// Whether the worker can no longer deliver for this entry.
bool RoundMachine::Impl::IsMissing(const std::string& name, const RoundEntry& entry) const {
  if (entry.delivered) return false;
  if (entry.rejected) return true;
  const Member* member = members_.Find(name);
  if (member == nullptr || !member->alive) return true;
  if (member->id.incarnation == entry.incarnation) return false;
  // Its new life has the delta of the former one, or may still say so after a restart of this server.
  if (!member->ready && member->restored) return false;
  return !member->offer || member->offer->incarnation != entry.incarnation || member->offer->round != round_.number;
}

void RoundMachine::Impl::CloseRoundIfDone() {
  if (phase_ != RunPhase::kTraining) return;
  std::vector<std::string> missing;
  std::vector<std::string> awaited;
  for (const auto& [name, entry] : round_.entries) {
    if (entry.delivered || !IsWaitedFor(entry)) continue;
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
  } else if (const RoundDeadline deadline = Deadline(); timer_fired_ && deadline.at && now_ >= *deadline.at) {
    missing.insert(missing.end(), awaited.begin(), awaited.end());
    CloseRound(deadline.reason, absl::StrCat("without ", absl::StrJoin(missing, ", "), "; ", deadline.text));
  }
}

void RoundMachine::Impl::CloseRound(Reason reason, std::string text) {
  phase_ = RunPhase::kCommitting;
  Decide(DecisionKind::kClose, reason, {}, std::move(text));
  CommitPlan plan = PlanCommit(
      config_.outer, {EndsWithThisRound(), config_.late.apply ? config_.late.versions_max : 0, config_.late.discount},
      &round_);
  plan.commit.method = config_.method;
  for (const CommitPlan::LeftOutDelta& left_out : plan.left_out) {
    Decide(DecisionKind::kClose, Reason::kLeftOut, {left_out.worker, round_.entries[left_out.worker].incarnation},
           absl::StrCat("its delta is not part of the sum: ", left_out.why));
    Emit(DropSpooled{left_out.push});
  }
  round_.decision = plan.commit;
  for (const auto& [name, entry] : round_.entries) {
    if (entry.delivered) RecordEntry(name);
  }
  Record(RoundDecidedRecord{plan.commit, round_.record});
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
  for (const auto& [name, entry] : round_.entries) {
    if (entry.delivered) Emit(DropSpooled{round_.KeyOf(name, entry)});
    if (entry.delivered || IsMissing(name, entry)) ledger_.Lose(entry.assignment.round, {name, entry.incarnation});
  }
  static_cast<DataCursors&>(state_) = round_.cursors_before;
  state_.rounds_aborted++;
  run_changed_ = true;
  register_.Forget(round_.number);
  ledger_.LoseRound(round_.number);
  Record(RoundAbortedRecord{round_.number, round_.attempt, text});
  EndRound();
  phase_ = RunPhase::kWaiting;
}

// Nothing can come any more of what a life of this worker was given, but for what the open round may count: a delta that
// waits for the commit, or is on its way.
void RoundMachine::Impl::LoseLeasesOf(const std::string& worker) {
  const auto it = round_.entries.find(worker);
  ledger_.LoseBefore(it == round_.entries.end() ? state_.version : it->second.assignment.round, worker);
}

// The tokens of a round that was committed. Those of workers that may still deliver stay out.
void RoundMachine::Impl::SettleLeases() {
  for (const auto& [name, entry] : round_.entries) {
    const WorkerId worker{name, entry.incarnation};
    if (entry.delivered) {
      const LeaseFate fate = entry.share > 0 ? LeaseFate::kApplied : LeaseFate::kRejected;
      ledger_.End(entry.assignment.round, worker, fate, entry.report.tokens);
    } else if (IsMissing(name, entry)) {
      ledger_.Lose(entry.assignment.round, worker);
    }
  }
  if (round_.number >= PushRegister::kRoundsKept) ledger_.LoseBefore(round_.number - PushRegister::kRoundsKept + 1);
}

void RoundMachine::Impl::EndRound() {
  round_.entries.clear();
  round_open_ = false;
}

void RoundMachine::Impl::On(const CommitDone& done) {
  if (phase_ != RunPhase::kCommitting || done.round != round_.number) return;
  FinishEvaluation();  // with the parts that came
  last_applied_ = round_.record.contributors;
  FinishRecord(done.stats, now_ - round_.opened_at, &round_);
  round_.record.params_digest = done.params_digest;
  round_.record.view_digest = done.view_digest;
  const bool over = EndsWithThisRound();
  last_shares_.clear();
  for (const auto& [name, entry] : round_.entries) {
    if (entry.share == 0) continue;
    last_shares_[name] = entry.share;
    state_.worker_inner_steps += entry.report.inner_steps;
    Member* member = members_.Find(name);
    if (member == nullptr) continue;
    member->tokens += entry.report.tokens;
    RecordMember(*member);
  }
  state_.version = round_.number + 1;
  view_digest_ = done.view_digest;
  state_.inner_steps_done += round_.inner_steps;
  ObserveRound(config_.interval, round_.record, &state_.interval);
  state_.history.push_back(round_.record);
  register_.Trim(round_.number);
  SettleLeases();
  run_changed_ = true;
  KeepLateWork();
  Record(RoundCommittedRecord{round_.number, done.stats, round_.record});
  Emit(RoundCommitted{round_.number, last_applied_, static_cast<std::uint32_t>(round_.entries.size()),
                      now_ - round_.opened_at, round_.last_delivery_at - round_.first_delivery_at, done.stats,
                      round_.record});
  for (const auto& [name, member] : members_.all()) {
    if (member.alive && member.ready && member.session != 0) {
      Emit(SendRoundClosed{member.session, round_.number, state_.version, done.params_digest, done.view_digest});
    }
  }
  EndRound();
  phase_ = RunPhase::kWaiting;
  AnswerParkedPulls();
  const bool due = config_.checkpoint_every_rounds != 0 && state_.version % config_.checkpoint_every_rounds == 0;
  if (due && !over) StartCheckpointOf();
}

}  // namespace autoloco::server
