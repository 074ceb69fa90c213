#include "common/rpc/bulk_call.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <string>

#include "autoloco/v1/parameter_server.grpc.pb.h"
#include "common/rpc/bulk_message.h"

namespace autoloco {
namespace {

// A service of the generated classes: it must not notice that its client does without them.
class EchoService final : public v1::ParameterServer::Service {
 public:
  grpc::Status Push(grpc::ServerContext*, grpc::ServerReader<v1::PushRequest>* reader, v1::PushReply* reply) override {
    v1::PushRequest request;
    while (reader->Read(&request)) {
      if (request.has_header()) reply->set_reason(request.header().payload_digest());
      if (request.has_chunk()) received += request.chunk().data();
    }
    reply->set_outcome(v1::PUSH_OUTCOME_LATE);
    return grpc::Status::OK;
  }
  grpc::Status Pull(grpc::ServerContext*, const v1::PullRequest* request,
                    grpc::ServerWriter<v1::PullReply>* writer) override {
    v1::PullReply reply;
    reply.mutable_header()->set_version(request->held_version());
    writer->Write(reply);
    reply.mutable_chunk()->set_data(received);
    writer->Write(reply);
    return grpc::Status::OK;
  }

  std::string received;
};

TEST(BulkCallTest, ReachesTheGeneratedService) {
  EchoService service;
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const std::shared_ptr<grpc::Channel> channel = server->InProcessChannel({});
  auto data = std::make_shared<const std::string>(50'000, 'x');
  {
    grpc::ClientContext context;
    v1::PushReply reply;
    const auto writer = StartPush(channel.get(), &context, &reply);
    v1::PushHeader header;
    header.set_payload_digest("digest");
    EXPECT_TRUE(writer->Write(MakeHeaderMessage(header)));
    EXPECT_TRUE(writer->Write(MakeChunkMessage(0, *data, data)));
    EXPECT_TRUE(writer->WritesDone());
    EXPECT_TRUE(writer->Finish().ok());
    EXPECT_EQ(reply.outcome(), v1::PUSH_OUTCOME_LATE);
    EXPECT_EQ(reply.reason(), "digest");
    EXPECT_EQ(service.received, *data);
  }
  {
    grpc::ClientContext context;
    v1::PullRequest request;
    request.set_held_version(4);
    const auto reader = StartPull(channel.get(), &context, request);
    grpc::ByteBuffer buffer;
    ReceivedBulk message;
    ASSERT_TRUE(reader->Read(&buffer));
    ASSERT_TRUE(message.Parse(&buffer).ok());
    v1::PullHeader header;
    ASSERT_TRUE(message.ParseHeader(&header).ok());
    EXPECT_EQ(header.version(), 4u);
    ASSERT_TRUE(reader->Read(&buffer));
    ASSERT_TRUE(message.Parse(&buffer).ok());
    EXPECT_EQ(message.fields().kind, BulkKind::kChunk);
    EXPECT_EQ(message.fields().data_bytes, data->size());
    EXPECT_FALSE(reader->Read(&buffer));
    EXPECT_TRUE(reader->Finish().ok());
  }
  server->Shutdown();
}

}  // namespace
}  // namespace autoloco
