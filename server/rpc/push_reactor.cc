#include "server/rpc/push_reactor.h"

#include <utility>

#include "autoloco/v1/parameter_server.pb.h"
#include "common/base/status_macros.h"
#include "server/rpc/convert.h"

namespace autoloco::server {

PushReactor::PushReactor(const RpcContext* context, grpc::ByteBuffer* reply)
    : context_(context),
      reply_(reply),
      ticket_(context->inbox->NextTicket()),
      record_(context, kParameterServer, "Push") {
  context_->inbox->Post(PushStarted{ticket_, this});
}

void PushReactor::ReceivePayload(std::shared_ptr<PayloadPart> part) {
  part_ = std::move(part);
  StartRead(&request_);
}

void PushReactor::Answer(PushOutcome outcome, const std::string& reason, bool replayed) {
  *reply_ = ToBytes(ToProto(outcome, reason, replayed));
  End(absl::OkStatus());
}

void PushReactor::End(const absl::Status& status) {
  record_.Ended(status.code());
  Finish(ToGrpcStatus(status));
}

void PushReactor::OnReadDone(bool ok) {
  if (part_ == nullptr) {
    OnHeader(ok);
  } else {
    OnChunk(ok);
  }
}

void PushReactor::OnHeader(bool ok) {
  absl::StatusOr<PushHeaderRead> header = absl::InvalidArgumentError("push: want a header first");
  if (ok) header = ReadHeaderMessage();
  if (header.ok()) return context_->inbox->Post(*std::move(header));
  context_->inbox->Post(PushMalformed{ticket_, header.status()});
}

absl::StatusOr<PushHeaderRead> PushReactor::ReadHeaderMessage() {
  AUTOLOCO_RETURN_IF_ERROR(message_.Parse(&request_));
  if (message_.fields().kind != BulkKind::kHeader) return absl::InvalidArgumentError("push: want a header first");
  v1::PushHeader header;
  AUTOLOCO_RETURN_IF_ERROR(message_.ParseHeader(&header));
  AUTOLOCO_ASSIGN_OR_RETURN(PushOpened event, ToPushOpened(header, context_->run, ticket_));
  AUTOLOCO_ASSIGN_OR_RETURN(const ByteRange range, ToRange(header));
  return PushHeaderRead{std::move(event), range};
}

void PushReactor::OnChunk(bool ok) {
  if (!ok) {
    const absl::Status status = part_->CheckWhole();
    return context_->inbox->Post(PushPayloadEnded{ticket_, status, !status.ok()});
  }
  absl::Status status = message_.Parse(&request_);
  if (status.ok() && message_.fields().kind != BulkKind::kChunk) {
    status = absl::InvalidArgumentError("push: want chunks after the header");
  }
  if (status.ok()) status = part_->Take(message_.fields().offset, message_.fields().data);
  message_.Clear();
  if (status.ok()) return StartRead(&request_);
  context_->inbox->Post(PushPayloadEnded{ticket_, status, false});
}

}  // namespace autoloco::server
