#include "worker/client/server_client.h"

#include <gtest/gtest.h>

#include "tests/unit/worker/client/scripted_service.h"

namespace autoloco::worker {
namespace {

ServerClientOptions Options(const std::string& target) {
  ServerClientOptions options;
  options.channel.target = target;
  options.worker = "w";
  return options;
}

TEST(ServerClientTest, AnAddressThatIsNoneIsRefusedAtOnce) {
  EventLog log;
  EXPECT_EQ(ServerClient::Create(Options("nowhere"), &log).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ServerClientTest, PlaintextBeyondLoopbackIsRefusedAtOnce) {
  EventLog log;
  EXPECT_EQ(ServerClient::Create(Options("192.0.2.1:7070"), &log).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// Nobody listens on port 1 of this machine.
TEST(ServerClientTest, WithoutAServerEverythingEndsWithUnavailable) {
  EventLog log;
  const std::unique_ptr<ServerClient> client = *ServerClient::Create(Options("127.0.0.1:1"), &log);
  client->OpenSession(1, {}, std::nullopt);
  EXPECT_EQ(log.Await<SessionEnded>().status.code(), absl::StatusCode::kUnavailable);
  BaseBuffer base = BaseBuffer::Allocate(10).value();
  client->StartPull({.ticket = 2, .base = &base});
  EXPECT_EQ(log.Await<PullEnded>().status.code(), absl::StatusCode::kUnavailable);
  client->StartPush({.ticket = 3, .identity = {}, .delta = std::make_shared<EncodedDelta>()});
  EXPECT_EQ(log.Await<PushEnded>().status.code(), absl::StatusCode::kUnavailable);
  client->AskPushStatus(4, {}, 0);
  EXPECT_EQ(log.Await<PushStatusEnded>().status.code(), absl::StatusCode::kUnavailable);
}

// What the server said it lacks holds for the next attempt of that push only.
TEST(ServerClientTest, ABrokenPushGoesOnWithWhatIsMissing) {
  ScriptedService service;
  std::vector<ByteRange> ranges;
  service.on_push = [&](grpc::ServerContext*, grpc::ServerReader<v1::PushRequest>* reader, v1::PushReply*) {
    v1::PushRequest request;
    EXPECT_TRUE(reader->Read(&request));
    ranges.push_back({request.header().first_byte(), request.header().byte_count()});
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "cut");
  };
  service.on_push_status = [](const v1::PushStatusRequest&, v1::PushStatusReply* reply) {
    reply->add_missing()->set_first_byte(60);
    reply->mutable_missing(0)->set_byte_count(40);
    return grpc::Status::OK;
  };
  EventLog log;
  const std::unique_ptr<ServerClient> client = *ServerClient::Create(Options(service.address()), &log);
  auto delta = std::make_shared<EncodedDelta>();
  delta->round = 7;
  delta->payload.resize(100);
  const Identity identity = {.run_id = "run", .incarnation = 2};
  const auto push = [&](const Identity& who) {
    client->StartPush({.ticket = 3, .identity = who, .delta = delta});
    EXPECT_EQ(log.Await<PushEnded>().status.code(), absl::StatusCode::kUnavailable);
  };
  const auto ask = [&] {
    client->AskPushStatus(4, identity, 7);
    EXPECT_TRUE(log.Await<PushStatusEnded>().status.ok());
  };
  push(identity);
  ask();
  push(identity);
  push(identity);
  ask();
  push({.run_id = "run", .incarnation = 3});
  EXPECT_EQ(ranges, (std::vector<ByteRange>{{0, 100}, {60, 40}, {0, 100}, {0, 100}}));
}

TEST(ServerClientTest, WhatIsOverIsIgnored) {
  EventLog log;
  const std::unique_ptr<ServerClient> client = *ServerClient::Create(Options("127.0.0.1:1"), &log);
  client->SendProgress(9, {.identity = {}, .evaluation = std::nullopt});
  client->CloseSession(9);
  client->CancelPull(9);
  client->CancelPush(9);
  client->OpenSession(1, {}, std::nullopt);
  EXPECT_EQ(log.Await<SessionEnded>().session, 1u);  // nothing came before it
  client->SendGoodbye(1, {}, "bye");
  client->CloseSession(1);
}

}  // namespace
}  // namespace autoloco::worker
