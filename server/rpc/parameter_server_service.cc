#include "server/rpc/parameter_server_service.h"

#include "server/rpc/pull_reactor.h"
#include "server/rpc/push_reactor.h"
#include "server/rpc/session_reactor.h"
#include "server/rpc/unary_call.h"

namespace autoloco::server {

grpc::ServerBidiReactor<v1::WorkerMessage, v1::ServerMessage>* ParameterServerService::Session(
    grpc::CallbackServerContext* call) {
  return new SessionReactor(context_, call);
}

grpc::ServerReadReactor<grpc::ByteBuffer>* ParameterServerService::Push(grpc::CallbackServerContext*,
                                                                        grpc::ByteBuffer* reply) {
  return new PushReactor(context_, reply);
}

grpc::ServerUnaryReactor* ParameterServerService::PushStatus(grpc::CallbackServerContext*,
                                                             const v1::PushStatusRequest* request,
                                                             v1::PushStatusReply* reply) {
  return new PushStatusReactor(context_, *request, reply);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* ParameterServerService::Pull(grpc::CallbackServerContext* call,
                                                                         const grpc::ByteBuffer* request) {
  return new PullReactor(context_, call, *request);
}

}  // namespace autoloco::server
