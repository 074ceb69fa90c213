// The reasons of the core's decisions.
#ifndef AUTOLOCO_SERVER_CORE_REASONS_H_
#define AUTOLOCO_SERVER_CORE_REASONS_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace autoloco::server {

// Why the core did what it did: the same words in the log, in `autoloco status` and as a metric label.
enum class DecisionKind { kMembership, kRound, kInterval, kDeadline, kClose, kAdmission, kRun };
enum class Reason {
  // kMembership
  kJoined,
  kReconnected,
  kOffered,        // it has the delta of an earlier life
  kReplaced,       // a newer incarnation of the same name fenced it out
  kSessionBroken,  // the stream ended without a goodbye; the lease runs on
  kLeaseExpired,
  kGoodbye,
  kRefused,
  kForgotten,  // an hour after it left
  kEvicted,    // by the operator
  kReadmitted,
  kViewMismatch,  // what it holds as a version is not what the server had as that version
  // kRound
  kOpened,
  kReassigned,  // strict mode: the successor of a lost worker takes over its interval
  kAborted,     // every assigned worker is gone and none delivered
  kJoinsRound,  // came in the middle, with work that fits what is left
  kNextRound,   // came when too little was left
  // kInterval: what the length of the next interval follows
  kFixed,
  kWarmup,        // the reference interval until the inner warm-up is over
  kCalibration,   // the reference interval while the references are measured
  kLearningRate,  // the inner learning rate has fallen
  kAgreement,     // so has the agreement of the workers, or it has risen
  kPath,
  kDispersion,
  kLoss,
  kHeld,  // the last round gave no number to go by
  kRandom,
  kReplay,
  kBudget,  // ahead of or behind the planned number of rounds
  kMinimum,
  kMaximum,
  kSpike,         // the last round's loss or delta jumped: interval and momentum are halved
  kNoGrowth,      // a spike was lately
  kLastInterval,  // cut to end with the run
  // kDeadline, and kClose when it has passed
  kDeadline,       // learned from the arrivals of a quorum
  kDeadlineFixed,  // the operator's
  // kClose
  kAllDelivered,
  kOthersGone,       // all that can still deliver have delivered
  kDisconnectGrace,  // the missing ones have broken sessions and their grace has passed
  kLeftOut,          // a delta of the round is not part of the sum
  // kAdmission
  kAccepted,
  kReplayed,
  kLate,
  kLateApplied,  // counts in a later round
  kStale,
  kNonFinite,
  kNormOutlier,
  kClipped,  // counts, scaled down to the limit of the norm
  kRoundAborted,
  kFenced,
  kWrongRun,
  kWrongLayout,
  kWrongSize,
  kChecksum,
  kMalformed,
  kNotAssigned,
  kEvaluationRefused,  // a part of the held-out loss that no worker can have evaluated
  kConflict,
  // kRun
  kWaitingForWorkers,
  kCompleted,
  kJoinTimeout,
  kShutdown,
  kNotEvaluated,  // no part of a version's held-out loss came that could count
  kCheckpointFailed,
};

// The name used in logs and labels, e.g. "lease_expired".
const char* ReasonName(Reason reason);
// The reason with this name; empty: none has it.
std::optional<Reason> ReasonFromName(absl::string_view name);
const char* DecisionKindName(DecisionKind kind);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_REASONS_H_
