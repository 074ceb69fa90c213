#include "worker/client/bulk_connections.h"

#include <utility>

#include "common/base/status_macros.h"

namespace autoloco::worker {

absl::StatusOr<std::vector<std::shared_ptr<grpc::Channel>>> BulkConnections::Get(std::size_t count) {
  MutexLock lock(&mutex_);
  while (channels_.size() < count) {
    AUTOLOCO_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel, MakeChannel(options_));
    channels_.push_back(std::move(channel));
  }
  return std::vector<std::shared_ptr<grpc::Channel>>(channels_.begin(), channels_.begin() + count);
}

void BulkConnections::Ended(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (!status.ok()) channels_.clear();
}

}  // namespace autoloco::worker
