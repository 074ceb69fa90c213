#include "worker/client/session.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/rpc/protocol.h"
#include "tests/unit/worker/client/received_run.h"
#include "tests/unit/worker/client/scripted_service.h"
#include "worker/client/messages.h"

namespace autoloco::worker {
namespace {

const Identity kIdentity{.run_id = "run-1", .incarnation = 3};

v1::ServerMessage WelcomeMessage(const v1::RunConfig& run) {
  v1::ServerMessage message;
  message.mutable_welcome()->set_run_id("run-1");
  message.mutable_welcome()->set_incarnation(3);
  message.mutable_welcome()->set_version(12);
  *message.mutable_welcome()->mutable_config() = run;
  return message;
}

class SessionTest : public ::testing::Test {
 protected:
  void Start() {
    session_ = std::make_unique<Session>(7, "w", &log_);
    session_->Start(service_.NewChannel(), kIdentity, std::nullopt);
  }
  EventLog log_;
  ScriptedService service_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionTest, HelloThenEverythingThatTheServerSays) {
  service_.on_session = [](grpc::ServerContext*, ScriptedService::SessionStream* stream) {
    v1::WorkerMessage hello;
    EXPECT_TRUE(stream->Read(&hello));
    EXPECT_EQ(hello.hello().protocol_version(), kProtocolVersion);
    EXPECT_EQ(hello.hello().identity().incarnation(), 3u);
    stream->Write(WelcomeMessage(ReceivedRun()));
    v1::ServerMessage message;
    message.mutable_assignment()->set_round(12);
    message.mutable_assignment()->set_inner_steps(25);
    message.mutable_assignment()->set_first_sample(400);
    message.mutable_assignment()->set_evaluation_parts(2);
    stream->Write(message);
    message.mutable_round_closed()->set_round(12);
    message.mutable_round_closed()->set_version(13);
    stream->Write(message);
    message.mutable_abort()->set_round(13);
    message.mutable_abort()->set_reason("all gone");
    stream->Write(message);
    message.mutable_drain()->set_cause(v1::Drain::CAUSE_RUN_DONE);
    stream->Write(message);
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "over");
  };
  Start();
  const Welcomed welcome = log_.Await<Welcomed>();
  EXPECT_EQ(welcome.session, 7u);
  EXPECT_EQ(welcome.identity, kIdentity);
  EXPECT_EQ(welcome.version, 12u);
  EXPECT_EQ(welcome.heartbeat, absl::Seconds(1.5));
  EXPECT_EQ(log_.settings().batch_size, 8u);
  const Assigned assigned = log_.Await<Assigned>();
  EXPECT_EQ(assigned.assignment,
            (Assignment{.round = 12, .inner_steps = 25, .first_sample = 400, .evaluation_parts = 2}));
  EXPECT_EQ(log_.Await<RoundClosed>().version, 13u);
  EXPECT_EQ(log_.Await<Aborted>().reason, "all gone");
  EXPECT_TRUE(log_.Await<Drained>().run_done);
  EXPECT_EQ(log_.Await<SessionEnded>().status, absl::UnavailableError("over"));
}

TEST_F(SessionTest, MessagesArriveInOrderAndGoodbyeIsTheLast) {
  std::vector<std::string> heard;
  service_.on_session = [&heard](grpc::ServerContext*, ScriptedService::SessionStream* stream) {
    v1::WorkerMessage message;
    while (stream->Read(&message)) {
      if (message.has_progress()) heard.push_back(message.progress().has_evaluation() ? "evaluation" : "progress");
      if (message.has_ready()) heard.push_back("ready");
      if (message.has_goodbye()) heard.push_back(message.goodbye().reason());
    }
    return grpc::Status::OK;
  };
  Start();
  session_->Send(ReadyMessage({.identity = kIdentity, .layout = {}}, "w"));
  ProgressReport report;
  report.evaluation = EvaluationPart{.version = 1, .loss_sum = 1, .tokens = 1};
  session_->Send(ProgressMessage(report, "w"));
  session_->SendLast(GoodbyeMessage(kIdentity, "w", "bye"));
  session_->Send(ProgressMessage(report, "w"));  // too late
  EXPECT_TRUE(log_.Await<SessionEnded>().status.ok());
  EXPECT_EQ(heard, (std::vector<std::string>{"ready", "evaluation", "bye"}));
}

TEST_F(SessionTest, ProgressThatCannotLeaveGivesWayToTheNext) {
  constexpr int kSent = 200000;
  int heard = 0;
  std::uint32_t last = 0;
  service_.on_session = [&](grpc::ServerContext*, ScriptedService::SessionStream* stream) {
    v1::WorkerMessage message;
    while (stream->Read(&message)) {
      if (!message.has_progress()) continue;
      ++heard;
      last = message.progress().steps_done();
    }
    return grpc::Status::OK;
  };
  Start();
  ProgressReport report;
  for (int i = 1; i <= kSent; ++i) {
    report.steps_done = static_cast<std::uint32_t>(i);
    session_->Send(ProgressMessage(report, "w"));
  }
  session_->SendLast(GoodbyeMessage(kIdentity, "w", "bye"));
  log_.Await<SessionEnded>();
  EXPECT_EQ(last, static_cast<std::uint32_t>(kSent));  // the newest is never lost
  EXPECT_LT(heard, kSent);
}

TEST_F(SessionTest, CancelEndsIt) {
  service_.on_session = [](grpc::ServerContext* context, ScriptedService::SessionStream*) {
    AwaitCancellation(context);
    return grpc::Status::CANCELLED;
  };
  Start();
  session_->Cancel();
  EXPECT_EQ(log_.Await<SessionEnded>().status.code(), absl::StatusCode::kCancelled);
}

TEST_F(SessionTest, ARunConfigThatDoesNotSuitEndsItWithTheReason) {
  service_.on_session = [](grpc::ServerContext* context, ScriptedService::SessionStream* stream) {
    stream->Write(WelcomeMessage(v1::RunConfig()));
    AwaitCancellation(context);
    return grpc::Status::CANCELLED;
  };
  Start();
  EXPECT_EQ(log_.Await<SessionEnded>().status.code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SessionTest, ARefusalArrivesWithItsMessage) {
  service_.on_session = [](grpc::ServerContext*, ScriptedService::SessionStream*) {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "incarnation expired: w#3");
  };
  Start();
  EXPECT_EQ(log_.Await<SessionEnded>().status, absl::FailedPreconditionError("incarnation expired: w#3"));
}

}  // namespace
}  // namespace autoloco::worker
