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

void PullReactor::Send(PullAnswer answer, std::shared_ptr<std::atomic<std::uint64_t>> bytes_moved) {
  answer_ = std::move(answer);
  bytes_moved_ = std::move(bytes_moved);
  *reply_.mutable_header() = ToProto(answer_);
  StartWrite(&reply_);
}

void PullReactor::End(const absl::Status& status) {
  record_.Ended(status.code());
  Finish(ToGrpcStatus(status));
}

void PullReactor::OnWriteDone(bool ok) {
  if (!ok) return context_->inbox->Post(PullEnded{ticket_, false});
  const std::size_t bytes = reply_.has_chunk() ? reply_.chunk().data().size() : reply_.live_block().data().size();
  bytes_moved_->fetch_add(bytes, std::memory_order_relaxed);
  if (!FillNext()) return context_->inbox->Post(PullEnded{ticket_, true});
  StartWrite(&reply_);
}

bool PullReactor::FillNext() {
  if (answer_.header_only) return false;
  if (answer_.live != nullptr) {
    if (blocks_sent_ == answer_.block_count) return false;
    FillLiveBlock();
  } else {
    if (bytes_sent_ == answer_.byte_count) return false;
    FillChunk();
  }
  return true;
}

void PullReactor::FillChunk() {
  v1::Chunk* const chunk = reply_.mutable_chunk();
  const std::uint64_t bytes = std::min<std::uint64_t>(answer_.byte_count - bytes_sent_, kChunkBytes);
  chunk->set_offset(bytes_sent_);
  answer_.payload->Copy(answer_.first_byte + bytes_sent_, bytes, chunk->mutable_data());
  bytes_sent_ += bytes;
}

// Copied and coded here, at the pace of the worker that reads: no more than one block of the view is ever held for it.
void PullReactor::FillLiveBlock() {
  if (!reader_) reader_.emplace(answer_.live, answer_.live_zstd_level);
  v1::LiveBlock* const live = reply_.mutable_live_block();
  const std::uint64_t block = answer_.first_block + blocks_sent_++;
  live->set_block(block);
  live->set_version(reader_->Read(block, live->mutable_data()));
}

}  // namespace autoloco::server
