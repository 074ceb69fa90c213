// The ParameterServer service: one line a call.
#ifndef AUTOLOCO_SERVER_RPC_PARAMETER_SERVER_SERVICE_H_
#define AUTOLOCO_SERVER_RPC_PARAMETER_SERVER_SERVICE_H_

#include "autoloco/v1/parameter_server.grpc.pb.h"
#include "server/rpc/rpc_context.h"

namespace autoloco::server {

// Thread-safe. The reactors own themselves.
class ParameterServerService final : public v1::ParameterServer::CallbackService {
 public:
  // `context` must outlive the service.
  explicit ParameterServerService(const RpcContext* context) : context_(context) {}

  grpc::ServerBidiReactor<v1::WorkerMessage, v1::ServerMessage>* Session(grpc::CallbackServerContext* call) override;
  grpc::ServerReadReactor<v1::PushRequest>* Push(grpc::CallbackServerContext* call, v1::PushReply* reply) override;
  grpc::ServerUnaryReactor* PushStatus(grpc::CallbackServerContext* call, const v1::PushStatusRequest* request,
                                       v1::PushStatusReply* reply) override;
  grpc::ServerWriteReactor<v1::PullReply>* Pull(grpc::CallbackServerContext* call,
                                                const v1::PullRequest* request) override;

 private:
  const RpcContext* const context_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RPC_PARAMETER_SERVER_SERVICE_H_
