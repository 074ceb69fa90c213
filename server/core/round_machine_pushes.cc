// Pushes and pulls: who may send a delta, what becomes of it, who may read the parameters.
//
// A push is checked twice: at its header, so that bytes which cannot count are not read, and when its payload has
// arrived, since the round may have closed meanwhile. The first outcome under a key is recorded and stands.
#include "absl/strings/str_cat.h"
#include "server/core/round_machine_impl.h"

namespace autoloco::server {
namespace {

// Sums of many learning rates differ in their last bits.
constexpr double kSumTolerance = 1e-6;

std::string KeyText(const PushKey& key) {
  return absl::StrCat("delta of ", key.worker.name, "#", key.worker.incarnation, " for round ", key.round);
}

Reason ReasonOf(PushOutcome outcome) {
  switch (outcome) {
    case PushOutcome::kAccepted: return Reason::kAccepted;
    case PushOutcome::kLate: return Reason::kLate;
    case PushOutcome::kStale: return Reason::kStale;
    case PushOutcome::kNonFinite: return Reason::kNonFinite;
    case PushOutcome::kRoundAborted: return Reason::kRoundAborted;
    case PushOutcome::kNormOutlier: return Reason::kNormOutlier;
  }
  return Reason::kMalformed;
}

// What the answer means for the tokens that the delta was trained on; outstanding: the commit or the abort will tell.
LeaseFate FateOf(PushOutcome outcome) {
  switch (outcome) {
    case PushOutcome::kLate:
    case PushOutcome::kStale: return LeaseFate::kLate;
    case PushOutcome::kAccepted:
    case PushOutcome::kRoundAborted: return LeaseFate::kOutstanding;
    default: return LeaseFate::kRejected;
  }
}

// The round stays open: its deltas count after the restart.
absl::Status ServerEnds() { return absl::UnavailableError("the server is shutting down; push again when it is back"); }

absl::Status ComesTooSoon() {
  return absl::UnavailableError("the round has closed, and the next one, which takes late deltas, is not open yet");
}

Reason ReasonOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDataLoss: return Reason::kChecksum;
    case absl::StatusCode::kOutOfRange: return Reason::kWrongSize;
    default: return Reason::kMalformed;
  }
}

}  // namespace

absl::Status RoundMachine::Impl::CheckSender(const Sender& sender, Reason* reason) const {
  if (sender.run_id != config_.run_id) {
    *reason = Reason::kWrongRun;
    return absl::FailedPreconditionError(absl::StrCat("run id: this is run ", config_.run_id, ", got ", sender.run_id));
  }
  if (absl::Status status = CheckLife(sender.worker); !status.ok()) {
    *reason = Reason::kFenced;
    return status;
  }
  const Member* member = members_.Find(sender.worker.name);
  if (member == nullptr || member->id.incarnation < sender.worker.incarnation) {
    *reason = Reason::kFenced;
    return absl::FailedPreconditionError(absl::StrCat("incarnation expired: ", sender.worker.name, "#",
                                                      sender.worker.incarnation, " is not known (any more)"));
  }
  if (!SpeaksFor(*member, sender.worker)) {
    *reason = Reason::kFenced;
    return absl::FailedPreconditionError(absl::StrCat("incarnation replaced: ", sender.worker.name,
                                                      " is now incarnation ", member->id.incarnation, ", got ",
                                                      sender.worker.incarnation));
  }
  return absl::OkStatus();
}

absl::Status RoundMachine::Impl::CheckPushHeader(const PushOpened& push, Reason* reason) const {
  if (push.layout_hash != config_.layout.hash()) {
    *reason = Reason::kWrongLayout;
    return absl::FailedPreconditionError(absl::StrCat("layout hash: want ",
                                                      absl::Hex(config_.layout.hash(), absl::kZeroPad16), ", got ",
                                                      absl::Hex(push.layout_hash, absl::kZeroPad16)));
  }
  *reason = Reason::kMalformed;
  if (push.fragment != 0) return absl::InvalidArgumentError(absl::StrCat("fragment: want 0, got ", push.fragment));
  if (!push.codec_matches) return absl::InvalidArgumentError("codec: not the run's codec (codec.delta)");
  if (push.round > state_.version || (push.round == state_.version && phase_ == RunPhase::kFinishing)) {
    return absl::InvalidArgumentError(
        absl::StrCat("round ", push.round, " has not opened; current version is ", state_.version));
  }
  if (push.payload_bytes == 0 || push.payload_bytes > config_.max_payload_bytes) {
    *reason = Reason::kWrongSize;
    return absl::InvalidArgumentError(
        absl::StrCat("payload_bytes: want 1 to ", config_.max_payload_bytes, ", got ", push.payload_bytes));
  }
  return absl::OkStatus();
}

// REQUIRES: the push is for the open round.
absl::Status RoundMachine::Impl::CheckAssigned(const PushOpened& push, Reason* reason) const {
  const auto it = round_.entries.find(push.sender.worker.name);
  if (it == round_.entries.end() || it->second.incarnation != push.sender.worker.incarnation) {
    *reason = Reason::kNotAssigned;
    return absl::FailedPreconditionError(absl::StrCat(push.sender.worker.name, "#", push.sender.worker.incarnation,
                                                      " has no part in round ", push.round));
  }
  const std::uint32_t least = push.leaving && !config_.strict ? 1 : it->second.assignment.inner_steps;
  if (push.report.inner_steps < least || push.report.inner_steps > it->second.assignment.inner_steps) {
    *reason = Reason::kMalformed;
    return absl::InvalidArgumentError(absl::StrCat("inner steps of round ", push.round, ": assigned ",
                                                   it->second.assignment.inner_steps, ", got ",
                                                   push.report.inner_steps));
  }
  *reason = Reason::kMalformed;
  return CheckWork(push.report);
}

// The weight of a delta follows from what its worker says it did: no more than these steps can have done.
absl::Status RoundMachine::Impl::CheckWork(const IntervalReport& report) const {
  const double sum_most = config_.interval.schedule.learning_rate * report.inner_steps;
  if (report.learning_rate_sum > sum_most * (1 + kSumTolerance)) {
    return absl::InvalidArgumentError(absl::StrCat("learning_rate_sum of ", report.inner_steps,
                                                   " inner steps: at most ", sum_most, ", got ",
                                                   report.learning_rate_sum));
  }
  const std::uint64_t tokens_most = std::uint64_t{report.inner_steps} * config_.batch_size * config_.tokens_per_sample;
  if (report.tokens > tokens_most) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokens of ", report.inner_steps, " inner steps: at most ", tokens_most, ", got ", report.tokens));
  }
  return absl::OkStatus();
}

RoundMachine::Impl::PendingPush RoundMachine::Impl::PendingOf(const PushOpened& push) {
  return {{push.sender.worker, push.round, push.fragment}, push.payload_digest, push.payload_bytes, push.report};
}

void RoundMachine::Impl::On(const PushOpened& push) {
  const PushKey key{push.sender.worker, push.round, push.fragment};
  Reason reason = Reason::kMalformed;
  absl::Status status = CheckSender(push.sender, &reason);
  if (status.ok()) status = CheckPushHeader(push, &reason);
  if (!status.ok()) {
    RefusePushWith(push.ticket, key, reason, status);
    return;
  }
  On(WorkerHeard{push.sender});
  if (push.leaving) EndWork(push.sender.worker.name);
  if (AnswerIfRecorded(push, key) || AnswerIfClosed(push, key)) return;
  status = CheckAssigned(push, &reason);
  if (!status.ok()) {
    RefusePushWith(push.ticket, key, reason, status);
    return;
  }
  DropPendingPush(key);  // the caller gave up on an earlier attempt that we still hold
  pending_[push.ticket] = PendingOf(push);
  Emit(AdmitPush{push.ticket, push.payload_bytes});
}

// The worker leaves: nobody counts on it any more.
void RoundMachine::Impl::EndWork(const std::string& name) {
  Member* const member = members_.Find(name);
  if (!member->ready) return;
  member->ready = false;
  RecordMember(*member);
}

bool RoundMachine::Impl::AnswerIfRecorded(const PushOpened& push, const PushKey& key) {
  const RecordedPush* recorded = register_.Find(key);
  if (recorded == nullptr) return false;
  if (recorded->payload_digest != push.payload_digest) {
    RefusePushWith(push.ticket, key, Reason::kConflict,
                   absl::AlreadyExistsError(absl::StrCat(KeyText(key), " is recorded with digest ",
                                                         recorded->payload_digest, ", got ", push.payload_digest)));
    return true;
  }
  Decide(DecisionKind::kAdmission, Reason::kReplayed, key.worker, PushOutcomeName(recorded->outcome));
  Emit(AnswerPush{push.ticket, recorded->outcome, recorded->reason, true});
  return true;
}

// Answers a push whose round takes no delta any more; its bytes need not come.
bool RoundMachine::Impl::AnswerIfClosed(const PushOpened& push, const PushKey& key) {
  if (EntryOf(key) != nullptr || (push.round == state_.version && phase_ == RunPhase::kTraining)) return false;
  if (WillTakeLate(key)) {
    RefusePushWith(push.ticket, key, Reason::kLate, ComesTooSoon());
    return true;
  }
  if (push.round == state_.version && ending_) {
    RefusePushWith(push.ticket, key, Reason::kShutdown, ServerEnds());
    return true;
  }
  PushOutcome outcome = PushOutcome::kStale;
  std::string text = absl::StrCat("current version is ", state_.version);
  if (push.round == state_.version && phase_ == RunPhase::kWaiting && state_.rounds_aborted == 0) {
    RefusePushWith(push.ticket, key, Reason::kNotAssigned,
                   absl::FailedPreconditionError(absl::StrCat("round ", push.round, " has not opened")));
    return true;
  }
  if (push.round == state_.version && phase_ == RunPhase::kWaiting) {
    outcome = PushOutcome::kRoundAborted;
    text = absl::StrCat("round ", push.round, " was aborted");
  } else if (push.round + 1 >= state_.version) {
    outcome = PushOutcome::kLate;
    text = absl::StrCat("round ", push.round, " has closed");
  }
  AnswerPushWith(push.ticket, PendingOf(push), outcome, std::move(text));
  return true;
}

void RoundMachine::Impl::On(const PushVerified& verified) {
  const auto it = pending_.find(verified.ticket);
  if (it == pending_.end()) {
    Emit(DropPayload{verified.ticket});
    return;
  }
  const PendingPush push = it->second;
  pending_.erase(it);
  Reason reason = Reason::kMalformed;
  absl::Status status = verified.status;
  if (!status.ok()) {
    reason = ReasonOf(status);
  } else {
    status = CheckSender({config_.run_id, push.key.worker}, &reason);
  }
  if (!status.ok()) {
    Emit(DropPayload{verified.ticket});
    RefusePushWith(verified.ticket, push.key, reason, status);
    return;
  }
  On(WorkerHeard{{config_.run_id, push.key.worker}});
  const bool open = EntryOf(push.key) != nullptr || (phase_ == RunPhase::kTraining && push.key.round == round_.number);
  if (open && !verified.finite) {
    Reject(verified.ticket, push, PushOutcome::kNonFinite, absl::StrCat(verified.non_finite, " is not finite"));
    return;
  }
  if (open) {
    const NormVerdict verdict = JudgeNormOf(push, verified.norm);
    if (verdict.admitted) {
      Deliver(verified.ticket, push, verdict);
    } else {
      Reject(verified.ticket, push, PushOutcome::kNormOutlier, verdict.text);
    }
    return;
  }
  Emit(DropPayload{verified.ticket});
  if (!open && ending_ && push.key.round == state_.version) {
    RefusePushWith(verified.ticket, push.key, Reason::kShutdown, ServerEnds());
    return;
  }
  if (WillTakeLate(push.key)) {
    RefusePushWith(verified.ticket, push.key, Reason::kLate, ComesTooSoon());
    return;
  }
  const bool aborted = phase_ == RunPhase::kWaiting && push.key.round == state_.version;
  AnswerPushWith(verified.ticket, push, aborted ? PushOutcome::kRoundAborted : PushOutcome::kLate,
                 absl::StrCat("round ", push.key.round, aborted ? " was aborted" : " has closed"));
}

// A delta of the open round that came whole and is unfit.
void RoundMachine::Impl::Reject(Ticket ticket, const PendingPush& push, PushOutcome outcome, std::string text) {
  Emit(DropPayload{ticket});
  const auto entry = round_.entries.find(push.key.worker.name);
  if (entry != round_.entries.end() && entry->second.incarnation == push.key.worker.incarnation) {
    entry->second.rejected = true;
    RecordEntry(push.key.worker.name);
  }
  AnswerPushWith(ticket, push, outcome, std::move(text));
}

void RoundMachine::Impl::Deliver(Ticket ticket, const PendingPush& push, const NormVerdict& verdict) {
  const auto it = round_.entries.find(push.key.worker.name);
  if (it == round_.entries.end() || it->second.incarnation != push.key.worker.incarnation) {
    Emit(DropPayload{ticket});
    RefusePushWith(ticket, push.key, Reason::kNotAssigned,
                   absl::FailedPreconditionError(absl::StrCat(KeyText(push.key), ": not assigned")));
    return;
  }
  RoundEntry& entry = it->second;
  if (round_.DeliveredCount() == 0) round_.first_delivery_at = now_;
  round_.last_delivery_at = now_;
  entry.delivered = true;
  entry.delivered_by = push.key.worker.incarnation;
  entry.payload_digest = push.payload_digest;
  entry.payload_bytes = push.payload_bytes;
  entry.report = push.report;
  ledger_.LoseBefore(entry.assignment.round, push.key.worker.name);  // it has gone on
  entry.clip = verdict.scale;
  LearnFromDelivery(push.key.worker.name, entry);
  RecordEntry(push.key.worker.name);
  if (verdict.scale < 1) Decide(DecisionKind::kAdmission, Reason::kClipped, push.key.worker, verdict.text);
  std::string text = verdict.text;
  if (round_.IsLate(entry)) {
    text = absl::StrCat("late: it counts in round ", round_.number, text.empty() ? "" : "; ", text);
    Decide(DecisionKind::kAdmission, Reason::kLateApplied, push.key.worker, text);
  }
  AnswerPushWith(ticket, push, PushOutcome::kAccepted, std::move(text));
}

void RoundMachine::Impl::On(const PushCancelled& cancelled) {
  if (pending_.erase(cancelled.ticket) != 0) Emit(DropPayload{cancelled.ticket});
}

void RoundMachine::Impl::On(const PushStatusAsked& asked) {
  AnswerPushStatus answer{.ticket = asked.ticket, .status = absl::OkStatus(), .known = false, .reason = ""};
  Reason reason = Reason::kMalformed;
  answer.status = CheckSender(asked.sender, &reason);
  if (answer.status.ok()) {
    On(WorkerHeard{asked.sender});
    const RecordedPush* recorded = register_.Find({asked.sender.worker, asked.round, asked.fragment});
    if (recorded != nullptr) {
      answer.known = true;
      answer.outcome = recorded->outcome;
      answer.reason = recorded->reason;
    }
  }
  Emit(std::move(answer));
}

void RoundMachine::Impl::RefusePushWith(Ticket ticket, const PushKey& key, Reason reason, absl::Status status) {
  Decide(DecisionKind::kAdmission, reason, key.worker, std::string(status.message()));
  Emit(RefusePush{ticket, std::move(status), reason});
}

// Records the outcome, then answers with it.
void RoundMachine::Impl::AnswerPushWith(Ticket ticket, const PendingPush& push, PushOutcome outcome, std::string text) {
  // An aborted round opens again under its number: what was said of a delta in between does not bind.
  if (outcome != PushOutcome::kRoundAborted) {
    const bool kept = outcome == PushOutcome::kAccepted;
    const RecordedPush recorded{push.payload_digest, outcome, text};
    register_.Record(push.key, recorded);
    Record(PushRecord{push.key, recorded, kept ? push.payload_bytes : 0, kept ? ticket : 0});
  }
  if (const LeaseFate fate = FateOf(outcome); fate != LeaseFate::kOutstanding) {
    ledger_.End(push.key.round, push.key.worker, fate, push.report.tokens);
  }
  Decide(DecisionKind::kAdmission, ReasonOf(outcome), push.key.worker,
         absl::StrCat(KeyText(push.key), text.empty() ? "" : ": ", text));
  Emit(AnswerPush{ticket, outcome, std::move(text), false});
}

void RoundMachine::Impl::DropPendingPush(const PushKey& key) {
  for (auto it = pending_.begin(); it != pending_.end(); ++it) {
    const PushKey& held = it->second.key;
    if (held.worker != key.worker || held.round != key.round || held.fragment != key.fragment) continue;
    Emit(RefusePush{it->first, absl::UnavailableError("a newer attempt of the same push took over")});
    Emit(DropPayload{it->first});
    pending_.erase(it);
    return;
  }
}

bool RoundMachine::Impl::HasPendingPush(const std::string& worker) const {
  for (const auto& [ticket, push] : pending_) {
    if (push.key.worker.name == worker && EntryOf(push.key) != nullptr) return true;
  }
  return false;
}

}  // namespace autoloco::server
