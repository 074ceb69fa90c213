#include "server/rpc/unary_call.h"

#include <utility>

#include "server/rpc/convert.h"

namespace autoloco::server {

PushStatusReactor::PushStatusReactor(const RpcContext* context, const v1::PushStatusRequest& request,
                                     v1::PushStatusReply* reply)
    : reply_(reply), record_(context, kParameterServer, "PushStatus") {
  absl::StatusOr<PushStatusAsked> event = ToPushStatusAsked(request, context->inbox->NextTicket());
  if (event.ok()) {
    context->inbox->Post(PushStatusParked{this, *std::move(event)});
  } else {
    context->inbox->Post(CallRejected{this, event.status()});
  }
}

void PushStatusReactor::Answer(const AnswerPushStatus& answer, const std::vector<ByteRange>& missing) {
  *reply_ = ToProto(answer, missing);
  End(absl::OkStatus());
}

void PushStatusReactor::End(const absl::Status& status) {
  record_.Ended(status.code());
  Finish(ToGrpcStatus(status));
}

StatusReactor::StatusReactor(const RpcContext* context, v1::Status* reply)
    : context_(context), reply_(reply), record_(context, kAdmin, "GetStatus") {
  context_->inbox->Post(StatusParked{this});
}

void StatusReactor::Answer(const ServerStatus& status) {
  *reply_ = ToProto(status, *context_);
  End(absl::OkStatus());
}

void StatusReactor::End(const absl::Status& status) {
  record_.Ended(status.code());
  Finish(ToGrpcStatus(status));
}

EvictReactor::EvictReactor(const RpcContext* context, const v1::EvictRequest& request)
    : record_(context, kAdmin, "Evict") {
  if (IsValidWorkerName(request.worker())) {
    context->inbox->Post(EvictParked{this, {context->inbox->NextTicket(), request.worker(), request.readmit()}});
  } else {
    context->inbox->Post(CallRejected{this, absl::InvalidArgumentError("worker: want [a-zA-Z0-9_.-]{1,64}")});
  }
}

void EvictReactor::End(const absl::Status& status) {
  record_.Ended(status.code());
  Finish(ToGrpcStatus(status));
}

}  // namespace autoloco::server
