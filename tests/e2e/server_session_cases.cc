// Sessions and processes that are wrong, against a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/rpc/layout_proto.h"
#include "common/rpc/protocol.h"
#include "tests/e2e/server_fixture.h"
#include "tests/support/raw_call.h"

namespace autoloco::test {
namespace {

using ::testing::HasSubstr;

v1::WorkerMessage Hello(const std::string& name) {
  v1::WorkerMessage message;
  message.mutable_hello()->set_protocol_version(kProtocolVersion);
  message.mutable_hello()->mutable_identity()->set_worker(name);
  return message;
}

class SessionTest : public ServerFixture {
 protected:
  void SetUp() override {
    StartServer();
    if (!HasFatalFailure()) JoinBoth();
  }

  // What a session that says this is ended with.
  absl::Status Ending(const std::vector<v1::WorkerMessage>& messages) {
    RawSession session(a_->client().control());
    for (const v1::WorkerMessage& message : messages) session.Send(message);
    return session.Finish();
  }
};

TEST_F(SessionTest, WrongRunIdIsRefused) {
  v1::WorkerMessage hello = Hello("c");
  hello.mutable_hello()->mutable_identity()->set_run_id("another-run");
  const absl::Status status = Ending({hello});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(server_.run_id));
  ExpectUnharmed();
}

TEST_F(SessionTest, WrongProtocolVersionIsRefused) {
  v1::WorkerMessage hello = Hello("c");
  hello.mutable_hello()->set_protocol_version(kProtocolVersion + 1);
  const absl::Status status = Ending({hello});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("protocol"));
  ExpectUnharmed();
}

TEST_F(SessionTest, OtherLayoutIsRefusedWithTheFirstDifference) {
  std::vector<TensorSpec> tensors;
  for (const TensorEntry& entry : layout_.tensors()) tensors.push_back(entry.spec);
  tensors[2].shape[0] += 1;
  const absl::StatusOr<Layout> other = Layout::Make(tensors);
  ASSERT_TRUE(other.ok());
  RawSession session(a_->client().control());
  session.Send(Hello("c"));
  const std::optional<v1::ServerMessage> welcome = session.ReceiveKind(v1::ServerMessage::kWelcome);
  ASSERT_TRUE(welcome.has_value());
  v1::WorkerMessage ready;
  ready.mutable_ready()->mutable_identity()->set_run_id(welcome->welcome().run_id());
  ready.mutable_ready()->mutable_identity()->set_worker("c");
  ready.mutable_ready()->mutable_identity()->set_incarnation(welcome->welcome().incarnation());
  *ready.mutable_ready()->mutable_layout() = ToProto(*other);
  session.Send(ready);
  const absl::Status status = session.Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(tensors[2].name));
  ExpectUnharmed();
}

TEST_F(SessionTest, MalformedMessagesAreInvalid) {
  EXPECT_EQ(Ending({Hello("not a name")}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Ending({v1::WorkerMessage()}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Ending({Hello("c"), Hello("c")}).code(), absl::StatusCode::kInvalidArgument);
  v1::WorkerMessage progress;
  progress.mutable_progress()->mutable_identity()->set_worker("c");
  progress.mutable_progress()->set_phase(v1::Progress::PHASE_TRAINING);
  EXPECT_EQ(Ending({progress}).code(), absl::StatusCode::kInvalidArgument);
  v1::WorkerMessage ready;
  ready.mutable_ready()->mutable_identity()->set_worker("c");
  ready.mutable_ready()->mutable_layout()->add_tensors()->set_name(std::string(1000, 'x'));
  EXPECT_EQ(Ending({Hello("c"), ready}).code(), absl::StatusCode::kInvalidArgument);
  ExpectUnharmed();
}

TEST_F(SessionTest, ASessionWithoutHelloIsCut) {
  const absl::Status status = Ending({});
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Hello"));
  ExpectUnharmed();
}

TEST_F(SessionTest, ABrokenSessionDoesNotStopTheRun) {
  b_->session().Break();
  const absl::StatusOr<v1::PushReply> reply = a_->PushDelta(assignment_a_, SomeDelta(0.01F));
  ASSERT_TRUE(reply.ok()) << reply.status();
  const absl::StatusOr<v1::Status> status = a_->client().WaitForVersion(1);  // after the grace for broken sessions
  EXPECT_TRUE(status.ok()) << status.status();
}

TEST_F(SessionTest, PulledParametersHaveTheDigestOfTheStatus) {
  const absl::StatusOr<v1::Status> status = a_->client().GetStatus();
  ASSERT_TRUE(status.ok()) << status.status();
  const PulledParameters& pulled = a_->parameters();
  EXPECT_EQ(Digest128(pulled.values), pulled.header.params_digest());
  EXPECT_EQ(status->params_digest(), pulled.header.params_digest());
  EXPECT_EQ(status->parameters(), layout_.value_count());
  EXPECT_EQ(pulled.header.layout_hash(), layout_.hash());
  EXPECT_EQ(status->bytes_down(), 2 * pulled.header.payload_bytes());
  EXPECT_EQ(status->alive(), 2);
  EXPECT_EQ(status->assigned(), 2);
  EXPECT_EQ(status->phase(), v1::Status::PHASE_TRAINING);
}

TEST_F(SessionTest, HealthAndReflectionAnswer) {
  // HealthCheckRequest{} -> HealthCheckResponse{status: SERVING}
  EXPECT_EQ(RawUnaryCall(a_->client().control_channel(), "/grpc.health.v1.Health/Check", ""), "\x08\x01");
  // ServerReflectionRequest{list_services: "*"}
  const std::string services = RawStreamCall(
      a_->client().control_channel(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x3a\x01*");
  EXPECT_THAT(services, HasSubstr("autoloco.v1.ParameterServer"));
  EXPECT_THAT(services, HasSubstr("autoloco.v1.Admin"));
}

TEST_F(SessionTest, PortAndStateFolderAreNotShared) {
  TempFolder other;
  const auto run = [](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {ProgramPath("autoloco-server"), "--model.preset", "nano", "--metrics-listen",
                                          "127.0.0.1:0"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const absl::StatusOr<std::unique_ptr<Process>> process = Process::Start(arguments);
    EXPECT_TRUE(process.ok()) << process.status();
    const absl::StatusOr<int> exit_code = (*process)->Wait();
    EXPECT_TRUE(exit_code.ok()) << exit_code.status();
    return std::make_pair(exit_code.value_or(-1), (*process)->Log());
  };
  const auto [port_code, port_log] = run({"--state-dir", other.path(), "--listen", server_.address});
  EXPECT_EQ(port_code, 2);
  EXPECT_THAT(port_log, HasSubstr(server_.address));
  const auto [folder_code, folder_log] = run({"--state-dir", folder_.path(), "--listen", "127.0.0.1:0"});
  EXPECT_EQ(folder_code, 2);
  EXPECT_THAT(folder_log, HasSubstr(folder_.path()));
  ExpectUnharmed();
}

TEST_F(SessionTest, SigtermDrainsAndEndsWithZero) {
  server_.process->Signal(SIGTERM);
  const std::optional<v1::ServerMessage> drain = a_->session().ReceiveKind(v1::ServerMessage::kDrain);
  ASSERT_TRUE(drain.has_value());
  EXPECT_EQ(drain->drain().cause(), v1::Drain::CAUSE_SERVER_SHUTDOWN);
  const absl::StatusOr<int> exit_code = server_.process->Wait();
  ASSERT_TRUE(exit_code.ok()) << exit_code.status();
  EXPECT_EQ(*exit_code, 0) << server_.process->Log();
}

}  // namespace
}  // namespace autoloco::test
