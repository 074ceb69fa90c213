#include "server/rpc/session_reactor.h"

#include <utility>

#include "server/rpc/convert.h"

namespace autoloco::server {

SessionReactor::SessionReactor(const RpcContext* context, grpc::CallbackServerContext* call)
    : context_(context),
      call_(call),
      ticket_(context->inbox->NextTicket()),
      record_(context, kParameterServer, "Session") {
  context_->inbox->Post(SessionOpened{ticket_, this});
}

void SessionReactor::Send(const SessionMessage& message) {
  outgoing_ = ToProto(message, *context_);
  StartWrite(&outgoing_);
}

void SessionReactor::End(const absl::Status& status) {
  record_.Ended(status.code());
  Finish(ToGrpcStatus(status));
}

void SessionReactor::OnReadDone(bool ok) {
  if (!ok) return context_->inbox->Post(SessionEnded{ticket_});
  absl::StatusOr<SessionEvent> event = ToSessionEvent(incoming_, ticket_);
  if (!event.ok()) return context_->inbox->Post(SessionMalformed{ticket_, event.status()});
  context_->inbox->Post(SessionRead{ticket_, *std::move(event)});
}

void SessionReactor::OnWriteDone(bool ok) { context_->inbox->Post(SessionWritten{ticket_, ok}); }

}  // namespace autoloco::server
