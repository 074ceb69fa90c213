// What a status from the server tells the worker to do. The one table behind session, pull and push.
#ifndef AUTOLOCO_WORKER_CORE_VERDICT_H_
#define AUTOLOCO_WORKER_CORE_VERDICT_H_

#include "absl/status/status.h"

namespace autoloco::worker {

enum class Verdict {
  kRetry,   // back off and try again
  kRebase,  // this version or round is gone: go on with the next assignment
  kRejoin,  // the lease ran out: join as a new incarnation
  kStop,    // another process has this name, or the two sides do not fit: exit 2 with the message
};

// REQUIRES: !status.ok().
Verdict Judge(const absl::Status& status);

// The same for a push. A round that was aborted while the session was broken may have opened again without this worker:
// its delta is then refused with FAILED_PRECONDITION, but nothing is wrong with the worker (kRebase).
Verdict JudgePush(const absl::Status& status);

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CORE_VERDICT_H_
