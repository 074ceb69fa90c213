// Pull: the parameters of a version into the base buffer.
#ifndef AUTOLOCO_WORKER_CLIENT_PULL_H_
#define AUTOLOCO_WORKER_CLIENT_PULL_H_

#include "absl/strings/string_view.h"
#include "autoloco/v1/parameter_server.grpc.pb.h"
#include "worker/client/transfer.h"
#include "worker/core/events.h"
#include "worker/runtime/ports.h"

namespace autoloco::worker {

// Blocks until the call is over. The payload is taken whole, within the bound that the layout sets, before `job.base`
// is written; the digest of what was written is compared with the header's. Besides the server's errors:
// FAILED_PRECONDITION (another layout), DATA_LOSS (bytes out of order, too few or too many, a damaged block, another
// digest), CANCELLED, DEADLINE_EXCEEDED (stalled), RESOURCE_EXHAUSTED (memory).
PullEnded RunPull(v1::ParameterServer::Stub* stub, absl::string_view worker, const PullJob& job, Transfer* transfer);

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CLIENT_PULL_H_
