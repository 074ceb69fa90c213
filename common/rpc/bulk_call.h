// The bulk methods as a client calls them with raw bytes (common/rpc/bulk_message.h) in place of the stub's messages.
#ifndef AUTOLOCO_COMMON_RPC_BULK_CALL_H_
#define AUTOLOCO_COMMON_RPC_BULK_CALL_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/sync_stream.h>

#include <memory>

#include "autoloco/v1/parameter_server.pb.h"

namespace autoloco {

// All arguments are borrowed until the call is finished, the channel by the call itself.
std::unique_ptr<grpc::ClientWriter<grpc::ByteBuffer>> StartPush(grpc::Channel* channel, grpc::ClientContext* context,
                                                                v1::PushReply* reply);
std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> StartPull(grpc::Channel* channel, grpc::ClientContext* context,
                                                                const v1::PullRequest& request);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_RPC_BULK_CALL_H_
