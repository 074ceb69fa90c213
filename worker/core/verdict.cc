#include "worker/core/verdict.h"

#include "absl/strings/match.h"
#include "common/base/check.h"

namespace autoloco::worker {

Verdict Judge(const absl::Status& status) {
  AUTOLOCO_CHECK(!status.ok());
  switch (status.code()) {
    case absl::StatusCode::kFailedPrecondition:
      return absl::StartsWith(status.message(), "incarnation expired") ? Verdict::kRejoin : Verdict::kStop;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnimplemented: return Verdict::kStop;
    case absl::StatusCode::kAborted: return Verdict::kRebase;
    default:  // UNAVAILABLE, RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED, DATA_LOSS, and whatever a network makes of them
      return Verdict::kRetry;
  }
}

Verdict JudgePush(const absl::Status& status) {
  const Verdict verdict = Judge(status);
  if (verdict != Verdict::kStop || status.code() != absl::StatusCode::kFailedPrecondition) return verdict;
  for (const char* fatal : {"incarnation replaced", "run id", "run lost", "layout"}) {
    if (absl::StartsWith(status.message(), fatal)) return Verdict::kStop;
  }
  return Verdict::kRebase;
}

}  // namespace autoloco::worker
