// The server's life: starting beside another one, stopping, starting again, and what it finds in its state folder.
#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/cluster.h"
#include "tests/support/protocol_client.h"

namespace autoloco::test {
namespace {

using ::testing::HasSubstr;

constexpr int kSlack = 3;  // on a loaded machine

// A server that is expected to refuse: its end.
Ended RunServer(const Arguments& arguments) {
  const auto process = Process::Start(arguments).value();
  Ended ended;
  ended.exit_code = ExitCode(process.get());
  ended.output = process->Output();
  ended.log = process->Log();
  return ended;
}

Arguments ServerOn(const std::string& state_dir, const std::string& listen, const std::string& metrics_listen) {
  return {ProgramPath(kServer), "--state-dir", state_dir, "--listen", listen, "--metrics-listen", metrics_listen};
}

TEST(ServerStartTest, ThePortIsTaken) {
  Cluster cluster;
  cluster.StartServer(SmallRun(4, 4, 1));
  const Ended ended = RunServer(ServerOn(cluster.folder() + "/other", cluster.address(), "127.0.0.1:0"));
  EXPECT_EQ(ended.exit_code, 2) << ended.log;
  EXPECT_THAT(ended.log, HasSubstr(cluster.address()));
}

TEST(ServerStartTest, TheMetricsPortIsTaken) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(4, 4, 1), WithMetrics()));
  const Ended ended = RunServer(ServerOn(cluster.folder() + "/other", "127.0.0.1:0", cluster.metrics()));
  EXPECT_EQ(ended.exit_code, 2) << ended.log;
  EXPECT_THAT(ended.log, HasSubstr(cluster.metrics()));
}

TEST(ServerStartTest, TheStateFolderIsTaken) {
  Cluster cluster;
  cluster.StartServer(SmallRun(4, 4, 1));
  const Ended ended = RunServer(ServerOn(cluster.state_dir(), "127.0.0.1:0", "127.0.0.1:0"));
  EXPECT_EQ(ended.exit_code, 2) << ended.log;
  EXPECT_THAT(ended.log, HasSubstr(absl::StrCat("already in use by pid ", cluster.server().pid())));
  EXPECT_THAT(ended.log, HasSubstr(cluster.state_dir()));
}

TEST(ServerStartTest, TheStateFolderCannotBeMade) {
  Cluster cluster;
  for (const std::string& folder : {cluster.data_dir() + "/LICENSE/state", std::string("/proc/autoloco")}) {
    const Ended ended = RunServer(ServerOn(folder, "127.0.0.1:0", "127.0.0.1:0"));
    EXPECT_EQ(ended.exit_code, 2) << ended.log;
    EXPECT_THAT(ended.log, HasSubstr(folder));
  }
}

TEST(ServerStartTest, NoWorkerComes) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(4, 4, 1), {"--join-timeout-seconds", "1"}));
  EXPECT_EQ(ExitCode(&cluster.server()), 75) << cluster.server().Log();
  EXPECT_THAT(cluster.server().Log(), HasSubstr("waiting for 1 more of 1 workers"));
}

TEST(ServerRestartTest, SigtermStoresAndTheSameWorkersFinish) {
  Cluster cluster;
  const Arguments flags = SmallRun(40, 4, 2);
  cluster.StartServer(flags);
  const std::string run_id = LogValue(cluster.serving(), "run_id");
  const auto first = cluster.StartWorker({.name = "dc1", .step_ms = 80});
  const auto second = cluster.StartWorker({.name = "dc2", .step_ms = 80});
  cluster.WaitFor("version 2 and an interval under way",
                  [](const v1::Status& s) { return s.version() >= 2 && IsTraining(s, "dc1"); });
  cluster.server().Signal(SIGTERM);
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  const StoredModel stored = NewestCheckpoint(cluster.state_dir());
  EXPECT_GE(stored.inner_step, 8u);
  EXPECT_LT(stored.inner_step, 40u);
  EXPECT_EQ(stored.digest, stored.manifest_digest);

  cluster.StartServer(flags);
  EXPECT_EQ(LogValue(cluster.serving(), "run_id"), run_id);
  EXPECT_EQ(LogValue(cluster.serving(), "params_digest"), stored.digest);
  EXPECT_EQ(LogValue(cluster.serving(), "version"), absl::StrCat(stored.inner_step / 4));
  EXPECT_EQ(ExitCode(first.get()), 0) << first->Log();
  EXPECT_EQ(ExitCode(second.get()), 0) << second->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_EQ(NewestCheckpoint(cluster.state_dir()).inner_step, 40u);
}

TEST(ServerRestartTest, AKilledServerGoesOnWhereItWas) {
  Cluster cluster;
  const Arguments flags = Concat(SmallRun(40, 4, 1), {"--checkpoint-every-rounds", "2"});
  cluster.StartServer(flags);
  const auto worker = cluster.StartWorker({.name = "dc1", .step_ms = 80});
  const v1::Status before = cluster.WaitFor("version 3, and one stored before", [](const v1::Status& s) {
    return s.version() >= 3 && !s.checkpoint().empty() && IsTraining(s, "dc1");
  });
  cluster.server().Signal(SIGKILL);
  EXPECT_EQ(ExitCode(&cluster.server()), 128 + SIGKILL);
  cluster.StartServer(flags);
  if (LogValue(cluster.serving(), "version") == absl::StrCat(before.version())) {
    EXPECT_EQ(LogValue(cluster.serving(), "params_digest"), before.params_digest());
  } else {
    EXPECT_EQ(LogValue(cluster.serving(), "version"), absl::StrCat(before.version() + 1));  // it got that far meanwhile
  }
  EXPECT_EQ(ExitCode(worker.get()), 0) << worker->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_EQ(NewestCheckpoint(cluster.state_dir()).inner_step, 40u);
}

TEST(ServerRestartTest, AFolderThatLostItsRunTurnsTheWorkersAway) {
  Cluster cluster;
  cluster.StartServer(SmallRun(40, 4, 1));
  const auto worker = cluster.StartWorker({.name = "dc1", .step_ms = 50});
  cluster.WaitForVersion(1);
  cluster.server().Signal(SIGKILL);
  EXPECT_EQ(ExitCode(&cluster.server()), 128 + SIGKILL);
  for (const auto& entry : std::filesystem::directory_iterator(cluster.state_dir())) {
    const std::string name = entry.path().filename();
    if (name != "run_id" && name != "starts") std::filesystem::remove_all(entry.path());
  }
  cluster.StartServer(SmallRun(40, 4, 1));
  EXPECT_EQ(ExitCode(worker.get()), 2) << worker->Log();
  EXPECT_THAT(worker->Log(), HasSubstr("run lost"));
  EXPECT_THAT(worker->Log(), HasSubstr("--resume=PATH"));
}

TEST(ServerRestartTest, AnewIsRefusedOverCheckpoints) {
  Cluster cluster;
  cluster.StartServer(SmallRun(4, 4, 1));
  const auto worker = cluster.StartWorker({.name = "dc1"});
  EXPECT_EQ(ExitCode(worker.get()), 0) << worker->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0);
  const Ended ended = RunServer(cluster.ServerArguments(Concat(SmallRun(4, 4, 1), {"--resume", "none"})));
  EXPECT_EQ(ended.exit_code, 2) << ended.log;
  EXPECT_THAT(ended.log, HasSubstr(cluster.state_dir()));
}

void FlipABit(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(100000);
  const char flipped = static_cast<char>(file.get() ^ 1);
  file.seekp(100000);
  file.put(flipped);
  ASSERT_TRUE(file.good());
}

TEST(ServerRestartTest, ADamagedCheckpointIsNamedAndTheOneBeforeTaken) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(12, 4, 1), {"--checkpoint-every-rounds", "1"}));
  const auto worker = cluster.StartWorker({.name = "dc1"});
  EXPECT_EQ(ExitCode(worker.get()), 0) << worker->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0);
  const StoredModel newest = NewestCheckpoint(cluster.state_dir());
  ASSERT_EQ(newest.inner_step, 12u);
  const std::string damaged = newest.path + "/params.safetensors";
  FlipABit(damaged);

  // From the one before and the recorded round after it: the same version, to the last bit.
  cluster.StartServer(SmallRun(12, 4, 1));
  EXPECT_EQ(LogValue(cluster.serving(), "version"), "3");
  EXPECT_EQ(LogValue(cluster.serving(), "params_digest"), newest.manifest_digest);
  const std::vector<std::string> warnings = cluster.ServerLines(" checkpoint_damaged ");
  ASSERT_EQ(warnings.size(), 1u) << cluster.server().Log();
  EXPECT_EQ(LogValue(warnings[0], "path"), newest.path);
  EXPECT_THAT(warnings[0], HasSubstr(damaged));
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_EQ(NewestCheckpoint(cluster.state_dir()).digest, newest.manifest_digest);
}

TEST(ServerRestartTest, WithoutAWholeCheckpointTheRunIsDoneAgain) {
  Cluster cluster;
  const Arguments flags = Concat(SmallRun(12, 4, 1), {"--checkpoint-every-rounds", "0"});
  cluster.StartServer(flags);
  const auto worker = cluster.StartWorker({.name = "dc1"});
  EXPECT_EQ(ExitCode(worker.get()), 0) << worker->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0);
  const StoredModel only = NewestCheckpoint(cluster.state_dir());
  FlipABit(only.path + "/params.safetensors");

  cluster.StartServer(flags);
  EXPECT_EQ(LogValue(cluster.serving(), "version"), "3");
  EXPECT_EQ(LogValue(cluster.serving(), "params_digest"), only.manifest_digest);
  EXPECT_EQ(cluster.ServerLines(" doing_run_again ").size(), 1u) << cluster.server().Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_EQ(NewestCheckpoint(cluster.state_dir()).digest, only.manifest_digest);
}

TEST(ServerStopTest, AStalledPushDoesNotHoldItUp) {
  constexpr int kDrainSeconds = 2;
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(4, 4, 1), {"--drain-seconds", absl::StrCat(kDrainSeconds)}));
  const auto worker = RawWorker::Join(cluster.address(), "dc1", NanoLayout());
  ASSERT_TRUE(worker.ok()) << worker.status();
  const v1::Assignment assignment = (*worker)->WaitForAssignment().value();
  const std::string payload = EncodeVector(std::vector<float>(NanoLayout().value_count(), 1e-3f), Codec::kFp32, 1);
  std::vector<v1::PushRequest> messages = MakePush((*worker)->Header(assignment, payload), payload);

  grpc::ClientContext context;
  v1::PushReply reply;
  const auto push = (*worker)->client().bulk()->Push(&context, &reply);
  ASSERT_GE(messages.size(), 2u);
  messages[1].mutable_chunk()->mutable_data()->resize(payload.size() / 2);
  ASSERT_TRUE(push->Write(messages[0]));  // the header and half of the payload, and no more
  ASSERT_TRUE(push->Write(messages[1]));
  cluster.WaitFor("the chunk there", [](const v1::Status& s) { return s.bytes_up() > 0; });
  const Instant told = MonotonicClock()->Now();
  cluster.server().Signal(SIGTERM);
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_LT(MonotonicClock()->Now() - told, absl::Seconds(kSlack * kDrainSeconds));
  const grpc::Status status = push->Finish();
  EXPECT_FALSE(status.ok()) << reply.DebugString() << cluster.server().Log();
}

// ------------------------------------------------------------------------------------------------- command lines

class CommandLineTest : public ::testing::TestWithParam<const char*> {
 protected:
  // What must be given and has no default.
  static Arguments Required(const std::string& program) {
    return program == kServer ? Arguments{"--state-dir", "/nonexistent/state"}
                              : Arguments{"--data", "/nonexistent/text"};
  }
};

TEST_P(CommandLineTest, VersionAndHelp) {
  const Ended version = RunProgram(GetParam(), {"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.output, ::testing::MatchesRegex("[a-z-]+ [0-9]+\\.[0-9]+\\.[0-9]+.*\n"));
  const Ended help = RunProgram(GetParam(), {"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, HasSubstr("--check-config"));
}

TEST_P(CommandLineTest, ChecksAndPrintsTheConfiguration) {
  const Ended checked = RunProgram(GetParam(), Concat(Required(GetParam()), {"--check-config"}));
  EXPECT_EQ(checked.exit_code, 0) << checked.log;
  const Ended printed = RunProgram(GetParam(), Concat(Required(GetParam()), {"--print-config"}));
  EXPECT_EQ(printed.exit_code, 0) << printed.log;
  EXPECT_THAT(printed.output, HasSubstr("/nonexistent/"));
  EXPECT_FALSE(std::filesystem::exists("/nonexistent"));
}

TEST_P(CommandLineTest, RefusesWhatItDoesNotKnow) {
  const Ended unknown = RunProgram(GetParam(), Concat(Required(GetParam()), {"--log-levle", "info"}));
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.log, HasSubstr("--log-levle"));
  EXPECT_THAT(unknown.log, HasSubstr("log-level"));  // the nearest one
  const Ended missing = RunProgram(GetParam(), {"--check-config"});
  EXPECT_EQ(missing.exit_code, 2);
  const Ended range = RunProgram(GetParam(), Concat(Required(GetParam()), {"--keepalive-seconds", "0"}));
  EXPECT_EQ(range.exit_code, 2);
  EXPECT_THAT(range.log, HasSubstr("keepalive"));
}

INSTANTIATE_TEST_SUITE_P(Daemons, CommandLineTest, ::testing::Values(kServer, kFakeWorker));

}  // namespace
}  // namespace autoloco::test
