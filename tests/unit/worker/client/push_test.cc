#include "worker/client/push.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/rpc/protocol.h"
#include "tests/unit/worker/client/scripted_service.h"

namespace autoloco::worker {
namespace {

class PushTest : public ::testing::Test {
 protected:
  PushTest() {
    auto delta = std::make_shared<EncodedDelta>();
    delta->round = 4;
    delta->payload.resize(2 * kChunkBytes + 1000);
    for (std::size_t i = 0; i < delta->payload.size(); ++i) delta->payload[i] = static_cast<char>(i * 31 % 251);
    delta->digest = "digest";
    delta_ = delta;
  }
  PushEnded Run() {
    Transfer transfer(absl::Seconds(60));
    return RunPush(service_.NewStub().get(), "w",
                   {.ticket = 5, .identity = {.run_id = "run-1", .incarnation = 2}, .delta = delta_}, &transfer);
  }
  std::shared_ptr<const EncodedDelta> delta_;
  ScriptedService service_;
};

TEST_F(PushTest, HeaderThenChunksInOrder) {
  std::string received;
  service_.on_push = [&](grpc::ServerContext*, grpc::ServerReader<v1::PushRequest>* reader, v1::PushReply* reply) {
    v1::PushRequest request;
    EXPECT_TRUE(reader->Read(&request));
    EXPECT_EQ(request.header().identity().worker(), "w");
    EXPECT_EQ(request.header().round(), 4u);
    EXPECT_EQ(request.header().payload_bytes(), delta_->payload.size());
    while (reader->Read(&request)) {
      EXPECT_EQ(request.chunk().offset(), received.size());
      EXPECT_LE(request.chunk().data().size(), kChunkBytes);
      received += request.chunk().data();
    }
    reply->set_outcome(v1::PUSH_OUTCOME_ACCEPTED);
    return grpc::Status::OK;
  };
  const PushEnded ended = Run();
  ASSERT_TRUE(ended.status.ok()) << ended.status;
  EXPECT_EQ(ended.ticket, 5u);
  EXPECT_EQ(ended.outcome, PushOutcome::kAccepted);
  EXPECT_EQ(received, delta_->payload);
}

TEST_F(PushTest, AnAnswerBeforeTheBytesIsTaken) {
  service_.on_push = [](grpc::ServerContext*, grpc::ServerReader<v1::PushRequest>* reader, v1::PushReply* reply) {
    v1::PushRequest request;
    EXPECT_TRUE(reader->Read(&request));
    reply->set_outcome(v1::PUSH_OUTCOME_LATE);
    reply->set_reason("round 4 has closed");
    return grpc::Status::OK;
  };
  const PushEnded ended = Run();
  ASSERT_TRUE(ended.status.ok()) << ended.status;
  EXPECT_EQ(ended.outcome, PushOutcome::kLate);
  EXPECT_EQ(ended.reason, "round 4 has closed");
}

TEST_F(PushTest, ARefusalIsPassedOn) {
  service_.on_push = [](grpc::ServerContext*, grpc::ServerReader<v1::PushRequest>*, v1::PushReply*) {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "come back");
  };
  EXPECT_EQ(Run().status, absl::ResourceExhaustedError("come back"));
}

TEST_F(PushTest, AnAnswerWithoutAnOutcomeIsAnError) {
  service_.on_push = [](grpc::ServerContext*, grpc::ServerReader<v1::PushRequest>* reader, v1::PushReply*) {
    v1::PushRequest request;
    while (reader->Read(&request)) {
    }
    return grpc::Status::OK;
  };
  EXPECT_EQ(Run().status.code(), absl::StatusCode::kInternal);
}

TEST_F(PushTest, AStalledPushIsGivenUp) {
  service_.on_push = [](grpc::ServerContext* context, grpc::ServerReader<v1::PushRequest>*, v1::PushReply*) {
    AwaitCancellation(context);
    return grpc::Status::CANCELLED;
  };
  Transfer transfer(absl::Milliseconds(20));
  const PushEnded ended =
      RunPush(service_.NewStub().get(), "w", {.ticket = 5, .identity = {}, .delta = delta_}, &transfer);
  EXPECT_EQ(ended.status.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(PushTest, StatusKnownAndUnknown) {
  service_.on_push_status = [](const v1::PushStatusRequest& request, v1::PushStatusReply* reply) {
    EXPECT_EQ(request.identity().incarnation(), 2u);
    reply->set_known(request.round() == 4);
    reply->mutable_reply()->set_outcome(v1::PUSH_OUTCOME_STALE);
    reply->mutable_reply()->set_reason("old");
    return grpc::Status::OK;
  };
  const auto ask = [this](Round round) {
    Transfer transfer(absl::Seconds(60));
    return RunPushStatus(service_.NewStub().get(), "w",
                         {.ticket = 8, .identity = {.run_id = "run-1", .incarnation = 2}, .round = round},
                         absl::Seconds(60), &transfer);
  };
  const PushStatusEnded known = ask(4);
  ASSERT_TRUE(known.status.ok()) << known.status;
  EXPECT_TRUE(known.known);
  EXPECT_EQ(known.outcome, PushOutcome::kStale);
  EXPECT_EQ(known.reason, "old");
  EXPECT_FALSE(ask(5).known);
}

}  // namespace
}  // namespace autoloco::worker
