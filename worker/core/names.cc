// The words for the core's enums, as logs and the console write them.
#include "worker/core/effects.h"
#include "worker/core/types.h"

namespace autoloco::worker {

const char* WorkerPhaseName(WorkerPhase phase) {
  switch (phase) {
    case WorkerPhase::kJoining: return "joining";
    case WorkerPhase::kTraining: return "training";
    case WorkerPhase::kPushing: return "pushing";
    case WorkerPhase::kWaiting: return "waiting";
    case WorkerPhase::kPulling: return "pulling";
    case WorkerPhase::kEvaluating: return "evaluating";
  }
  return "unknown";
}

const char* PullFormName(PullForm form) {
  switch (form) {
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

const char* NoteKindName(NoteKind kind) {
  switch (kind) {
    case NoteKind::kJoined: return "joined";
    case NoteKind::kReconnected: return "reconnected";
    case NoteKind::kDisconnected: return "disconnected";
    case NoteKind::kAssigned: return "assigned";
    case NoteKind::kPulled: return "pulled";
    case NoteKind::kPullFailed: return "pull_failed";
    case NoteKind::kEvaluated: return "evaluated";
    case NoteKind::kDropped: return "interval_dropped";
    case NoteKind::kPushAnswered: return "push_answered";
    case NoteKind::kPushFailed: return "push_failed";
    case NoteKind::kRejoining: return "rejoining";
    case NoteKind::kLeaving: return "leaving";
  }
  return "unknown";
}

}  // namespace autoloco::worker
