// The unary calls: parked in the loop, answered from there.
#ifndef AUTOLOCO_SERVER_RPC_UNARY_CALL_H_
#define AUTOLOCO_SERVER_RPC_UNARY_CALL_H_

#include <grpcpp/support/server_callback.h>

#include "autoloco/v1/admin.pb.h"
#include "autoloco/v1/parameter_server.pb.h"
#include "server/rpc/call_record.h"
#include "server/rpc/rpc_context.h"
#include "server/runtime/calls.h"

namespace autoloco::server {

// PushStatus. Deletes itself after End() or Answer().
class PushStatusReactor final : public grpc::ServerUnaryReactor, public PushStatusCall {
 public:
  // `context` outlives the reactor; `reply` lives until OnDone. Posts PushStatusParked or CallRejected.
  PushStatusReactor(const RpcContext* context, const v1::PushStatusRequest& request, v1::PushStatusReply* reply);

  void Answer(const AnswerPushStatus& answer, const std::vector<ByteRange>& missing) override;
  void End(const absl::Status& status) override;
  void OnDone() override { delete this; }

 private:
  v1::PushStatusReply* const reply_;
  CallRecord record_;
};

// GetStatus. Deletes itself after End() or Answer().
class StatusReactor final : public grpc::ServerUnaryReactor, public StatusCall {
 public:
  // As above. Posts StatusParked.
  StatusReactor(const RpcContext* context, v1::Status* reply);

  void Answer(const ServerStatus& status) override;
  void End(const absl::Status& status) override;
  void OnDone() override { delete this; }

 private:
  const RpcContext* const context_;
  v1::Status* const reply_;
  CallRecord record_;
};

// Evict. Deletes itself after End().
class EvictReactor final : public grpc::ServerUnaryReactor, public Call {
 public:
  // `context` outlives the reactor. Posts EvictParked or CallRejected.
  EvictReactor(const RpcContext* context, const v1::EvictRequest& request);

  void End(const absl::Status& status) override;
  void OnDone() override { delete this; }

 private:
  CallRecord record_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RPC_UNARY_CALL_H_
