// Pull: one step of the base buffer towards the server's current parameters.
#ifndef AUTOLOCO_WORKER_CLIENT_PULL_H_
#define AUTOLOCO_WORKER_CLIENT_PULL_H_

#include <grpcpp/channel.h>

#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/client/transfer.h"
#include "worker/core/events.h"
#include "worker/runtime/ports.h"

namespace autoloco::worker {

// Says what `job.base` holds, and takes what the server decides to send: block by block into the base as they come,
// each checked. Blocks until it is over. What an earlier pull has begun and not finished is asked for first. Of the
// payload no more than one block a stream is held, whatever the header says.
//
// `channels`: at least one. A large payload comes over all of them: each stream asks at once for its share of whatever
// the server decides on, and takes part in what the first header says. When one fails they all end; what came stays.
// Errors besides the server's:
//   ABORTED              the server does not have the rest of an unfinished transfer: the next pull begins anew
//   FAILED_PRECONDITION  another layout
//   DATA_LOSS            a header that does not fit what was asked, bytes out of order, too few or too many, a damaged
//                        block; or all came and the digest is another one, which the next pull tells the server
//   CANCELLED, DEADLINE_EXCEEDED (stalled)
PullEnded RunPull(const std::vector<std::shared_ptr<grpc::Channel>>& channels, absl::string_view worker,
                  const PullJob& job, Transfer* transfer);

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CLIENT_PULL_H_
