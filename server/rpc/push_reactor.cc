#include "server/rpc/push_reactor.h"

#include <utility>

#include "server/rpc/convert.h"

namespace autoloco::server {

PushReactor::PushReactor(const RpcContext* context, v1::PushReply* reply)
    : context_(context),
      reply_(reply),
      ticket_(context->inbox->NextTicket()),
      record_(context, kParameterServer, "Push") {
  context_->inbox->Post(PushStarted{ticket_, this});
}

void PushReactor::ReceivePayload(std::shared_ptr<Payload> payload) {
  payload_ = std::move(payload);
  StartRead(&request_);
}

void PushReactor::Answer(PushOutcome outcome, const std::string& reason, bool replayed) {
  *reply_ = ToProto(outcome, reason, replayed);
  End(absl::OkStatus());
}

void PushReactor::End(const absl::Status& status) {
  record_.Ended(status.code());
  Finish(ToGrpcStatus(status));
}

void PushReactor::OnReadDone(bool ok) {
  if (payload_ == nullptr) {
    OnHeader(ok);
  } else {
    OnChunk(ok);
  }
}

void PushReactor::OnHeader(bool ok) {
  absl::StatusOr<PushOpened> event = absl::InvalidArgumentError("push: want a header first");
  if (ok && request_.has_header()) event = ToPushOpened(request_.header(), context_->run, ticket_);
  if (event.ok()) return context_->inbox->Post(PushHeaderRead{*std::move(event)});
  context_->inbox->Post(PushMalformed{ticket_, event.status()});
}

void PushReactor::OnChunk(bool ok) {
  absl::Status status;
  if (!ok) {
    status = payload_->CheckWhole();
    return context_->inbox->Post(PushPayloadEnded{ticket_, status, !status.ok()});
  }
  if (request_.has_chunk()) {
    status = payload_->Take(request_.chunk().offset(), request_.chunk().data());
  } else {
    status = absl::InvalidArgumentError("push: want chunks after the header");
  }
  if (status.ok()) return StartRead(&request_);
  context_->inbox->Post(PushPayloadEnded{ticket_, status, false});
}

}  // namespace autoloco::server
