#include "server/rpc/pull_reactor.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "autoloco/v1/parameter_server.pb.h"
#include "common/base/status_macros.h"
#include "common/rpc/bulk_message.h"
#include "common/rpc/protocol.h"
#include "server/rpc/convert.h"

namespace autoloco::server {

PullReactor::PullReactor(const RpcContext* context, grpc::CallbackServerContext* call, const grpc::ByteBuffer& request)
    : context_(context),
      call_(call),
      ticket_(context->inbox->NextTicket()),
      record_(context, kParameterServer, "Pull") {
  absl::StatusOr<PullOpened> event = Read(request);
  if (event.ok()) {
    context_->inbox->Post(PullParked{this, *std::move(event)});
  } else {
    context_->inbox->Post(CallRejected{this, event.status()});
  }
}

absl::StatusOr<PullOpened> PullReactor::Read(const grpc::ByteBuffer& request) const {
  v1::PullRequest message;
  AUTOLOCO_RETURN_IF_ERROR(FromBytes(request, &message));
  return ToPullOpened(message, ticket_);
}

void PullReactor::Send(PullAnswer answer, std::shared_ptr<std::atomic<std::uint64_t>> bytes_moved) {
  answer_ = std::move(answer);
  bytes_moved_ = std::move(bytes_moved);
  reply_ = MakeHeaderMessage(ToProto(answer_));
  StartWrite(&reply_);
}

void PullReactor::End(const absl::Status& status) {
  record_.Ended(status.code());
  Finish(ToGrpcStatus(status));
}

void PullReactor::OnWriteDone(bool ok) {
  if (!ok) return context_->inbox->Post(PullEnded{ticket_, false});
  bytes_moved_->fetch_add(reply_bytes_, std::memory_order_relaxed);
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
  reply_bytes_ = std::min<std::uint64_t>(answer_.byte_count - bytes_sent_, kChunkBytes);
  const std::vector<absl::string_view> data = answer_.payload->Pieces(answer_.first_byte + bytes_sent_, reply_bytes_);
  reply_ = MakeChunkMessage(bytes_sent_, data, answer_.payload);
  bytes_sent_ += reply_bytes_;
}

// Copied and coded here, at the pace of the worker that reads: no more than one block of the view is ever held for it.
void PullReactor::FillLiveBlock() {
  const std::uint64_t block = answer_.first_block + blocks_sent_++;
  const auto data = std::make_shared<std::string>();
  const Version version = answer_.live->Read(block, data.get());
  reply_ = MakeLiveBlockMessage(block, version, *data, data);
  reply_bytes_ = data->size();
}

}  // namespace autoloco::server
