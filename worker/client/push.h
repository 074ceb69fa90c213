// Push: an encoded delta to the server, and the question what became of one.
#ifndef AUTOLOCO_WORKER_CLIENT_PUSH_H_
#define AUTOLOCO_WORKER_CLIENT_PUSH_H_

#include <grpcpp/channel.h>

#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "autoloco/v1/parameter_server.grpc.pb.h"
#include "common/base/byte_ranges.h"
#include "worker/client/transfer.h"
#include "worker/core/events.h"
#include "worker/runtime/ports.h"

namespace autoloco::worker {

// The streams of a push carry at least this much each: for less, another connection costs more than it gives.
inline constexpr std::uint64_t kStreamBytesMin = 1024 * 1024;

// How a push goes to the server.
struct PushRoute {
  std::vector<std::shared_ptr<grpc::Channel>> channels;  // at least one; the streams are spread over them
  std::vector<ByteRange> missing;                        // what the server lacks of the payload; empty: all of it
};

// Sends the header and the payload in chunks, straight from where it lies; blocks until the server has answered, which
// it may do before all chunks are sent. When one stream fails they all end: the server keeps what came. Besides the
// server's errors: CANCELLED, DEADLINE_EXCEEDED (stalled).
PushEnded RunPush(const PushRoute& route, absl::string_view worker, const PushJob& job, Transfer* transfer);

struct PushQuestion {
  Ticket ticket = 0;
  Identity identity;
  Round round = 0;
};

// Blocks for at most `timeout`. `missing`: of a push that is not known as a whole, what has not come; empty: all of it.
PushStatusEnded RunPushStatus(v1::ParameterServer::Stub* stub, absl::string_view worker, const PushQuestion& question,
                              absl::Duration timeout, Transfer* transfer, std::vector<ByteRange>* missing);

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CLIENT_PUSH_H_
