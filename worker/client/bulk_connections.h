// Connections for bulk calls of one kind: each channel is a TCP connection of its own.
#ifndef AUTOLOCO_WORKER_CLIENT_BULK_CONNECTIONS_H_
#define AUTOLOCO_WORKER_CLIENT_BULK_CONNECTIONS_H_

#include <grpcpp/channel.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/rpc/channel.h"

namespace autoloco::worker {

// Thread-safe.
class BulkConnections {
 public:
  explicit BulkConnections(const ChannelOptions& options) : options_(options) {}

  // The first `count` connections; those that are not there yet are made. Errors as MakeChannel.
  absl::StatusOr<std::vector<std::shared_ptr<grpc::Channel>>> Get(std::size_t count);
  // A call ended so: after a failure all are dropped, and the next call makes new ones.
  void Ended(const absl::Status& status);

 private:
  const ChannelOptions options_;
  Mutex mutex_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CLIENT_BULK_CONNECTIONS_H_
