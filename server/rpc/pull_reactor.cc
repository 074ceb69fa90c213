#include "server/rpc/pull_reactor.h"

#include <algorithm>
#include <utility>

#include "common/rpc/protocol.h"
#include "server/rpc/convert.h"

namespace autoloco::server {

PullReactor::PullReactor(const RpcContext* context, grpc::CallbackServerContext* call, const v1::PullRequest& request)
    : context_(context),
      call_(call),
      ticket_(context->inbox->NextTicket()),
      record_(context, kParameterServer, "Pull") {
  absl::StatusOr<PullOpened> event = ToPullOpened(request, ticket_);
  if (event.ok()) {
    context_->inbox->Post(PullParked{this, *std::move(event)});
  } else {
    context_->inbox->Post(CallRejected{this, event.status()});
  }
}

void PullReactor::SendSnapshot(std::shared_ptr<const EncodedSnapshot> snapshot,
                               std::shared_ptr<std::atomic<std::uint64_t>> bytes_moved) {
  snapshot_ = std::move(snapshot);
  bytes_moved_ = std::move(bytes_moved);
  *reply_.mutable_header() = ToProto(*snapshot_);
  StartWrite(&reply_);
}

void PullReactor::End(const absl::Status& status) {
  record_.Ended(status.code());
  Finish(ToGrpcStatus(status));
}

void PullReactor::OnWriteDone(bool ok) {
  if (!ok) return context_->inbox->Post(PullEnded{ticket_, false});
  std::uint64_t offset = bytes_moved_->load(std::memory_order_relaxed);
  if (reply_.has_chunk()) {
    offset += reply_.chunk().data().size();
    bytes_moved_->store(offset, std::memory_order_relaxed);
  }
  const std::uint64_t left = snapshot_->payload_bytes() - offset;
  if (left == 0) return context_->inbox->Post(PullEnded{ticket_, true});
  v1::Chunk* chunk = reply_.mutable_chunk();
  chunk->set_offset(offset);
  snapshot_->Copy(offset, std::min<std::uint64_t>(left, kChunkBytes), chunk->mutable_data());
  StartWrite(&reply_);
}

}  // namespace autoloco::server
