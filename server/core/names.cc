// The words for the core's enums: the same in logs, status and metric labels.
#include "server/core/pull.h"
#include "server/core/records.h"
#include "server/core/types.h"

namespace autoloco::server {

const char* ReasonName(Reason reason) {
  switch (reason) {
    case Reason::kJoined: return "joined";
    case Reason::kReconnected: return "reconnected";
    case Reason::kOffered: return "delta_offered";
    case Reason::kReplaced: return "replaced";
    case Reason::kSessionBroken: return "session_broken";
    case Reason::kLeaseExpired: return "lease_expired";
    case Reason::kGoodbye: return "goodbye";
    case Reason::kRefused: return "refused";
    case Reason::kForgotten: return "forgotten";
    case Reason::kEvicted: return "evicted";
    case Reason::kReadmitted: return "readmitted";
    case Reason::kViewMismatch: return "view_mismatch";
    case Reason::kOpened: return "opened";
    case Reason::kReassigned: return "reassigned";
    case Reason::kAborted: return "aborted";
    case Reason::kJoinsRound: return "joins_round";
    case Reason::kNextRound: return "next_round";
    case Reason::kFixed: return "fixed";
    case Reason::kWarmup: return "warmup";
    case Reason::kCalibration: return "calibration";
    case Reason::kLearningRate: return "learning_rate";
    case Reason::kAgreement: return "agreement";
    case Reason::kPath: return "path";
    case Reason::kDispersion: return "dispersion";
    case Reason::kLoss: return "loss";
    case Reason::kHeld: return "held";
    case Reason::kRandom: return "random";
    case Reason::kReplay: return "replay";
    case Reason::kBudget: return "budget";
    case Reason::kMinimum: return "minimum";
    case Reason::kMaximum: return "maximum";
    case Reason::kSpike: return "spike";
    case Reason::kNoGrowth: return "no_growth";
    case Reason::kLastInterval: return "last_interval";
    case Reason::kDeadline: return "deadline";
    case Reason::kDeadlineFixed: return "deadline_fixed";
    case Reason::kAllDelivered: return "all_delivered";
    case Reason::kOthersGone: return "others_gone";
    case Reason::kDisconnectGrace: return "disconnect_grace";
    case Reason::kLeftOut: return "left_out";
    case Reason::kAccepted: return "accepted";
    case Reason::kReplayed: return "replayed";
    case Reason::kLate: return "late";
    case Reason::kLateApplied: return "late_applied";
    case Reason::kStale: return "stale";
    case Reason::kNonFinite: return "non_finite";
    case Reason::kNormOutlier: return "norm_outlier";
    case Reason::kClipped: return "clipped";
    case Reason::kRoundAborted: return "round_aborted";
    case Reason::kFenced: return "fenced";
    case Reason::kWrongRun: return "wrong_run";
    case Reason::kWrongLayout: return "layout";
    case Reason::kWrongSize: return "size";
    case Reason::kChecksum: return "checksum";
    case Reason::kMalformed: return "malformed";
    case Reason::kNotAssigned: return "not_assigned";
    case Reason::kEvaluationRefused: return "evaluation_refused";
    case Reason::kConflict: return "conflict";
    case Reason::kWaitingForWorkers: return "waiting_for_workers";
    case Reason::kCompleted: return "completed";
    case Reason::kJoinTimeout: return "join_timeout";
    case Reason::kShutdown: return "shutdown";
    case Reason::kNotEvaluated: return "not_evaluated";
    case Reason::kCheckpointFailed: return "checkpoint_failed";
  }
  return "unknown";
}

std::optional<Reason> ReasonFromName(absl::string_view name) {
  for (int value = 0; value <= static_cast<int>(Reason::kCheckpointFailed); ++value) {
    const Reason reason = static_cast<Reason>(value);
    if (name == ReasonName(reason)) return reason;
  }
  return std::nullopt;
}

const char* DecisionKindName(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::kMembership: return "membership";
    case DecisionKind::kRound: return "round";
    case DecisionKind::kInterval: return "interval";
    case DecisionKind::kDeadline: return "deadline";
    case DecisionKind::kClose: return "close";
    case DecisionKind::kAdmission: return "admission";
    case DecisionKind::kRun: return "run";
  }
  return "unknown";
}

const char* PullFormName(PullForm form) {
  switch (form) {
    case PullForm::kUnspecified: return "unspecified";
    case PullForm::kNothing: return "nothing";
    case PullForm::kFull: return "full";
    case PullForm::kBroadcast: return "broadcast";
    case PullForm::kLive: return "live";
  }
  return "unknown";
}

const char* PushOutcomeName(PushOutcome outcome) {
  switch (outcome) {
    case PushOutcome::kAccepted: return "accepted";
    case PushOutcome::kLate: return "late";
    case PushOutcome::kStale: return "stale";
    case PushOutcome::kNonFinite: return "non_finite";
    case PushOutcome::kNormOutlier: return "norm_outlier";
    case PushOutcome::kRoundAborted: return "round_aborted";
  }
  return "unknown";
}

const char* LeaseFateName(LeaseFate fate) {
  switch (fate) {
    case LeaseFate::kOutstanding: return "outstanding";
    case LeaseFate::kApplied: return "applied";
    case LeaseFate::kLate: return "late";
    case LeaseFate::kRejected: return "rejected";
    case LeaseFate::kLost: return "lost";
  }
  return "unknown";
}

namespace {

const char* NameOf(const RunRecord&) { return "run"; }
const char* NameOf(const MemberRecord&) { return "member"; }
const char* NameOf(const MemberForgottenRecord&) { return "member_forgotten"; }
const char* NameOf(const RoundOpenedRecord&) { return "round_opened"; }
const char* NameOf(const EntryRecord&) { return "entry"; }
const char* NameOf(const PushRecord&) { return "push"; }
const char* NameOf(const RoundDecidedRecord&) { return "round_decided"; }
const char* NameOf(const RoundCommittedRecord&) { return "round_committed"; }
const char* NameOf(const RoundAbortedRecord&) { return "round_aborted"; }
const char* NameOf(const RunEvaluatedRecord&) { return "run_evaluated"; }
const char* NameOf(const EvaluationRecord&) { return "evaluation"; }
const char* NameOf(const CheckpointRecord&) { return "checkpoint"; }
const char* NameOf(const LeaseRecord&) { return "lease"; }
const char* NameOf(const LedgerRecord&) { return "ledger"; }

}  // namespace

const char* RecordName(const Record& record) {
  return std::visit([](const auto& one) { return NameOf(one); }, record);
}

const char* WorkerStateName(WorkerState state) {
  switch (state) {
    case WorkerState::kJoining: return "joining";
    case WorkerState::kTraining: return "training";
    case WorkerState::kPushing: return "pushing";
    case WorkerState::kWaiting: return "waiting";
    case WorkerState::kStale: return "stale";
    case WorkerState::kLeft: return "left";
  }
  return "unknown";
}

}  // namespace autoloco::server
