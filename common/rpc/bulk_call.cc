#include "common/rpc/bulk_call.h"

#include <grpcpp/impl/rpc_method.h>

#include "autoloco/v1/parameter_server.grpc.pb.h"

namespace autoloco {
namespace {

const grpc::internal::RpcMethod kPush("/autoloco.v1.ParameterServer/Push", grpc::internal::RpcMethod::CLIENT_STREAMING);
const grpc::internal::RpcMethod kPull("/autoloco.v1.ParameterServer/Pull", grpc::internal::RpcMethod::SERVER_STREAMING);

}  // namespace

std::unique_ptr<grpc::ClientWriter<grpc::ByteBuffer>> StartPush(grpc::Channel* channel, grpc::ClientContext* context,
                                                                v1::PushReply* reply) {
  return std::unique_ptr<grpc::ClientWriter<grpc::ByteBuffer>>(
      grpc::internal::ClientWriterFactory<grpc::ByteBuffer>::Create(channel, kPush, context, reply));
}

std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> StartPull(grpc::Channel* channel, grpc::ClientContext* context,
                                                                const v1::PullRequest& request) {
  return std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>>(
      grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(channel, kPull, context, request));
}

}  // namespace autoloco
