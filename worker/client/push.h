// Push: an encoded delta to the server, and the question what became of one.
#ifndef AUTOLOCO_WORKER_CLIENT_PUSH_H_
#define AUTOLOCO_WORKER_CLIENT_PUSH_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "autoloco/v1/parameter_server.grpc.pb.h"
#include "worker/client/transfer.h"
#include "worker/core/events.h"
#include "worker/runtime/ports.h"

namespace autoloco::worker {

// Sends the header and the payload in chunks; blocks until the server has answered, which it may do before all chunks
// are sent. Besides the server's errors: CANCELLED, DEADLINE_EXCEEDED (stalled).
PushEnded RunPush(v1::ParameterServer::Stub* stub, absl::string_view worker, const PushJob& job, Transfer* transfer);

struct PushQuestion {
  Ticket ticket = 0;
  Identity identity;
  Round round = 0;
};

// Blocks for at most `timeout`.
PushStatusEnded RunPushStatus(v1::ParameterServer::Stub* stub, absl::string_view worker, const PushQuestion& question,
                              absl::Duration timeout, Transfer* transfer);

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CLIENT_PUSH_H_
