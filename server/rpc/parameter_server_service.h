// The ParameterServer service: one line a call.
#ifndef AUTOLOCO_SERVER_RPC_PARAMETER_SERVER_SERVICE_H_
#define AUTOLOCO_SERVER_RPC_PARAMETER_SERVER_SERVICE_H_

#include "autoloco/v1/parameter_server.grpc.pb.h"
#include "server/rpc/rpc_context.h"

namespace autoloco::server {

// Push and Pull speak bytes (common/rpc/bulk_message.h), the others messages.
using RawService = v1::ParameterServer::WithCallbackMethod_Session<
    v1::ParameterServer::WithRawCallbackMethod_Push<v1::ParameterServer::WithCallbackMethod_PushStatus<
        v1::ParameterServer::WithRawCallbackMethod_Pull<v1::ParameterServer::Service>>>>;

// Thread-safe. The reactors own themselves.
class ParameterServerService final : public RawService {
 public:
  // `context` must outlive the service.
  explicit ParameterServerService(const RpcContext* context) : context_(context) {}

  grpc::ServerBidiReactor<v1::WorkerMessage, v1::ServerMessage>* Session(grpc::CallbackServerContext* call) override;
  grpc::ServerReadReactor<grpc::ByteBuffer>* Push(grpc::CallbackServerContext* call, grpc::ByteBuffer* reply) override;
  grpc::ServerUnaryReactor* PushStatus(grpc::CallbackServerContext* call, const v1::PushStatusRequest* request,
                                       v1::PushStatusReply* reply) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Pull(grpc::CallbackServerContext* call,
                                                   const grpc::ByteBuffer* request) override;

 private:
  const RpcContext* const context_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RPC_PARAMETER_SERVER_SERVICE_H_
