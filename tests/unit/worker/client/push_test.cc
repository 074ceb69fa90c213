#include "worker/client/push.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

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
  PushEnded Run(std::size_t connections = 1, std::vector<ByteRange> missing = {}) {
    Transfer transfer(absl::Seconds(60));
    PushRoute route{{}, std::move(missing)};
    for (std::size_t i = 0; i < connections; ++i) route.channels.push_back(service_.NewChannel());
    return RunPush(route, "w", {.ticket = 5, .identity = {.run_id = "run-1", .incarnation = 2}, .delta = delta_},
                   &transfer);
  }
  // A delta that is worth several streams.
  void EnlargeDelta() {
    auto delta = std::make_shared<EncodedDelta>(*delta_);
    delta->payload.resize(3 * kStreamBytesMin + 77);
    for (std::size_t i = 0; i < delta->payload.size(); ++i) delta->payload[i] = static_cast<char>(i * 31 % 251);
    delta_ = delta;
  }
  // Takes what one stream brings, and answers when it is over. False: the header's range is not what came.
  bool Receive(grpc::ServerReader<v1::PushRequest>* reader) {
    v1::PushRequest request;
    if (!reader->Read(&request) || !request.has_header()) return false;
    const ByteRange range{request.header().first_byte(), request.header().byte_count()};
    std::string bytes;
    while (reader->Read(&request)) {
      if (request.chunk().offset() != bytes.size()) return false;
      bytes += request.chunk().data();
    }
    MutexLock lock(&mutex_);
    ranges_.push_back(range);
    received_.resize(delta_->payload.size());
    received_.replace(range.first, bytes.size(), bytes);
    arrived_.NotifyAll();
    return bytes.size() == range.count;
  }

  std::shared_ptr<const EncodedDelta> delta_;
  ScriptedService service_;
  Mutex mutex_;
  CondVar arrived_;
  std::vector<ByteRange> ranges_ ABSL_GUARDED_BY(mutex_);
  std::string received_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(PushTest, HeaderThenChunksInOrder) {
  std::string received;
  service_.on_push = [&](grpc::ServerContext*, grpc::ServerReader<v1::PushRequest>* reader, v1::PushReply* reply) {
    v1::PushRequest request;
    EXPECT_TRUE(reader->Read(&request));
    EXPECT_EQ(request.header().identity().worker(), "w");
    EXPECT_EQ(request.header().round(), 4u);
    EXPECT_EQ(request.header().payload_bytes(), delta_->payload.size());
    EXPECT_EQ(request.header().first_byte(), 0u);
    EXPECT_EQ(request.header().byte_count(), delta_->payload.size());
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
      RunPush({{service_.NewChannel()}, {}}, "w", {.ticket = 5, .identity = {}, .delta = delta_}, &transfer);
  EXPECT_EQ(ended.status.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(PushTest, SeveralStreamsCarryOnePayload) {
  EnlargeDelta();
  service_.on_push = [&](grpc::ServerContext*, grpc::ServerReader<v1::PushRequest>* reader, v1::PushReply* reply) {
    EXPECT_TRUE(Receive(reader));
    MutexLock lock(&mutex_);
    while (ranges_.size() < 3) arrived_.Wait(&mutex_);  // all get the same answer when all is there
    reply->set_outcome(v1::PUSH_OUTCOME_ACCEPTED);
    return grpc::Status::OK;
  };
  const PushEnded ended = Run(3);
  ASSERT_TRUE(ended.status.ok()) << ended.status;
  MutexLock lock(&mutex_);
  EXPECT_EQ(ranges_.size(), 3u);
  EXPECT_EQ(received_, delta_->payload);
}

TEST_F(PushTest, ASmallDeltaTakesOneStream) {
  service_.on_push = [&](grpc::ServerContext*, grpc::ServerReader<v1::PushRequest>* reader, v1::PushReply* reply) {
    EXPECT_TRUE(Receive(reader));
    reply->set_outcome(v1::PUSH_OUTCOME_ACCEPTED);
    return grpc::Status::OK;
  };
  ASSERT_TRUE(Run(4).status.ok());
  MutexLock lock(&mutex_);
  EXPECT_EQ(ranges_.size(), 1u);
}

TEST_F(PushTest, OnlyWhatIsMissingIsSent) {
  service_.on_push = [&](grpc::ServerContext*, grpc::ServerReader<v1::PushRequest>* reader, v1::PushReply* reply) {
    EXPECT_TRUE(Receive(reader));
    MutexLock lock(&mutex_);
    while (ranges_.size() < 2) arrived_.Wait(&mutex_);
    reply->set_outcome(v1::PUSH_OUTCOME_ACCEPTED);
    return grpc::Status::OK;
  };
  ASSERT_TRUE(Run(1, {{10, 5}, {kChunkBytes, 200'000}}).status.ok());
  MutexLock lock(&mutex_);
  EXPECT_EQ(TotalBytes(ranges_), 200'005u);
  EXPECT_EQ(received_.substr(kChunkBytes, 200'000), delta_->payload.substr(kChunkBytes, 200'000));
}

TEST_F(PushTest, WhenAllHasArrivedOnlyTheAnswerIsAskedFor) {
  service_.on_push = [&](grpc::ServerContext*, grpc::ServerReader<v1::PushRequest>* reader, v1::PushReply* reply) {
    EXPECT_TRUE(Receive(reader));
    reply->set_outcome(v1::PUSH_OUTCOME_ACCEPTED);
    return grpc::Status::OK;
  };
  ASSERT_TRUE(Run(1, {{delta_->payload.size(), 0}}).status.ok());
  MutexLock lock(&mutex_);
  EXPECT_EQ(ranges_, (std::vector<ByteRange>{{delta_->payload.size(), 0}}));
}

TEST_F(PushTest, WhatCannotBeMissingIsNotBelieved) {
  service_.on_push = [&](grpc::ServerContext*, grpc::ServerReader<v1::PushRequest>* reader, v1::PushReply* reply) {
    EXPECT_TRUE(Receive(reader));
    reply->set_outcome(v1::PUSH_OUTCOME_ACCEPTED);
    return grpc::Status::OK;
  };
  ASSERT_TRUE(Run(1, {{0, delta_->payload.size() + 1}}).status.ok());
  MutexLock lock(&mutex_);
  EXPECT_EQ(received_, delta_->payload);
}

TEST_F(PushTest, OneBrokenStreamEndsAll) {
  EnlargeDelta();
  service_.on_push = [&](grpc::ServerContext* context, grpc::ServerReader<v1::PushRequest>* reader, v1::PushReply*) {
    v1::PushRequest request;
    EXPECT_TRUE(reader->Read(&request));
    if (request.header().first_byte() > 0) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "cut");
    while (reader->Read(&request)) {
    }
    AwaitCancellation(context);
    return grpc::Status::CANCELLED;
  };
  EXPECT_EQ(Run(2).status, absl::UnavailableError("cut"));
}

TEST_F(PushTest, StatusKnownAndUnknown) {
  service_.on_push_status = [](const v1::PushStatusRequest& request, v1::PushStatusReply* reply) {
    EXPECT_EQ(request.identity().incarnation(), 2u);
    reply->set_known(request.round() == 4);
    reply->mutable_reply()->set_outcome(v1::PUSH_OUTCOME_STALE);
    reply->mutable_reply()->set_reason("old");
    v1::ByteRange* missing = reply->add_missing();
    missing->set_first_byte(3);
    missing->set_byte_count(4);
    return grpc::Status::OK;
  };
  std::vector<ByteRange> missing;
  const auto ask = [&](Round round) {
    Transfer transfer(absl::Seconds(60));
    return RunPushStatus(service_.NewStub().get(), "w",
                         {.ticket = 8, .identity = {.run_id = "run-1", .incarnation = 2}, .round = round},
                         absl::Seconds(60), &transfer, &missing);
  };
  const PushStatusEnded known = ask(4);
  ASSERT_TRUE(known.status.ok()) << known.status;
  EXPECT_TRUE(known.known);
  EXPECT_EQ(known.outcome, PushOutcome::kStale);
  EXPECT_EQ(known.reason, "old");
  EXPECT_FALSE(ask(5).known);
  EXPECT_EQ(missing, (std::vector<ByteRange>{{3, 4}}));
}

}  // namespace
}  // namespace autoloco::worker
