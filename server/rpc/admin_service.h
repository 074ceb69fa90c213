// The Admin service: what the operator's command speaks to.
#ifndef AUTOLOCO_SERVER_RPC_ADMIN_SERVICE_H_
#define AUTOLOCO_SERVER_RPC_ADMIN_SERVICE_H_

#include "autoloco/v1/admin.grpc.pb.h"
#include "server/rpc/rounds_call.h"
#include "server/rpc/rpc_context.h"
#include "server/rpc/unary_call.h"

namespace autoloco::server {

// Thread-safe. The reactors own themselves.
class AdminService final : public v1::Admin::CallbackService {
 public:
  // `context` must outlive the service.
  explicit AdminService(const RpcContext* context) : context_(context) {}

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext*, const v1::GetStatusRequest*,
                                      v1::Status* reply) override {
    return new StatusReactor(context_, reply);
  }
  grpc::ServerUnaryReactor* GetRounds(grpc::CallbackServerContext*, const v1::GetRoundsRequest* request,
                                      v1::Rounds* reply) override {
    return new RoundsReactor(context_, request, reply);
  }
  grpc::ServerUnaryReactor* Evict(grpc::CallbackServerContext*, const v1::EvictRequest* request,
                                  v1::EvictReply*) override {
    return new EvictReactor(context_, *request);
  }

 private:
  const RpcContext* const context_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RPC_ADMIN_SERVICE_H_
