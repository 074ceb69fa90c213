#include "common/config/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/config/settings.h"
#include "common/config/value.h"

namespace autoloco {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Texts = std::vector<std::string>;

// A config file of this test.
std::string WriteFile(absl::string_view name, absl::string_view text) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/autoloco_load_test_", name);
  std::ofstream(path) << text;
  return path;
}

Outcome LoadServer(const Texts& arguments, const Texts& environment = {}) {
  v1::ServerConfig config;
  return LoadServerConfig(arguments, environment, &config);
}

Outcome LoadWorker(const Texts& arguments, const Texts& environment = {}) {
  v1::WorkerConfig config;
  return LoadWorkerConfig(arguments, environment, &config);
}

void ExpectError(const Outcome& outcome, absl::string_view error) {
  EXPECT_TRUE(outcome.exits);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(std::string(error)), EndsWith("\n")));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(LoadTest, EverySettingIsSet) {
  v1::ServerConfig server;
  server.mutable_run()->set_name("left from before");
  const Outcome outcome = LoadServerConfig({"--state-dir", "/s"}, {}, &server);
  EXPECT_FALSE(outcome.exits);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "");
  const SettingTable server_table(v1::ServerConfig::descriptor());
  for (const SettingField& setting : server_table.settings()) EXPECT_TRUE(IsGiven(setting, server)) << setting.path;
  EXPECT_EQ(server.server().state_dir(), "/s");
  EXPECT_EQ(server.run().name(), "autoloco");
  EXPECT_EQ(server.run().model().width(), 128u);

  v1::WorkerConfig worker;
  EXPECT_FALSE(LoadWorkerConfig({"--data=/d"}, {}, &worker).exits);
  const SettingTable worker_table(v1::WorkerConfig::descriptor());
  for (const SettingField& setting : worker_table.settings()) EXPECT_TRUE(IsGiven(setting, worker)) << setting.path;
}

TEST(LoadTest, LaterSourcesWin) {
  const std::string path = WriteFile("precedence.yaml", R"(
run:
  model: {preset: nano, layers: 3, context: 32, mlp_hidden: 96}
server: {state_dir: /file, threads: 1}
)");
  v1::ServerConfig config;
  const Outcome outcome =
      LoadServerConfig({"--config", path, "--context=16", "--threads=3"},
                       {"AUTOLOCO__RUN__MODEL__CONTEXT=8", "AUTOLOCO__RUN__MODEL__MLP_HIDDEN=48"}, &config);
  ASSERT_FALSE(outcome.exits) << outcome.err;
  EXPECT_EQ(config.run().model().rope_theta(), 10000);  // default
  EXPECT_EQ(config.run().model().width(), 64u);         // preset over default
  EXPECT_EQ(config.run().model().layers(), 3u);         // file over preset
  EXPECT_EQ(config.run().model().mlp_hidden(), 48u);    // environment over file
  EXPECT_EQ(config.run().model().context(), 16u);       // flag over environment
  EXPECT_EQ(config.server().threads(), 3u);
  EXPECT_EQ(config.server().state_dir(), "/file");
}

TEST(LoadTest, APresetOfALaterSourceFillsTheModel) {
  const std::string path = WriteFile("preset.yaml", "run: {model: {preset: nano}}\nserver: {state_dir: /s}\n");
  v1::ServerConfig config;
  const Outcome outcome = LoadServerConfig({"--config", path, "--preset=150m"}, {}, &config);
  ASSERT_FALSE(outcome.exits) << outcome.err;
  EXPECT_EQ(config.run().model().layers(), 12u);
  EXPECT_EQ(config.run().model().width(), 896u);
  EXPECT_THAT(outcome.err, HasSubstr("autoloco-server: warning: run.model.vocab_size: "));
}

TEST(LoadTest, ErrorsAreOneLineWithTheirOrigin) {
  const std::string path = WriteFile("bad.yaml", "server:\n  state_dir: /s\n  threads: 9999\n");
  ExpectError(LoadServer({"--config", path}),
              absl::StrCat("autoloco-server: ", path,
                           ":3:12: server.threads: expected a whole number from 0 to 1024, found '9999'\n"));
  ExpectError(LoadServer({"--config=/nonexistent"}), "autoloco-server: /nonexistent: cannot open this config file");
  ExpectError(
      LoadServer({"--state-dir=/s"}, {"AUTOLOCO__SERVER__THREADS=-1"}),
      "autoloco-server: environment variable AUTOLOCO__SERVER__THREADS: server.threads: expected a whole number");
  ExpectError(LoadServer({"--state-dir=/s"}, {"AUTOLOCO__SERVER__TREADS=1"}),
              "did you mean AUTOLOCO__SERVER__THREADS?");
  ExpectError(LoadServer({"--state-dir=/s", "--threads=x"}),
              "autoloco-server: flag --threads: server.threads: expected a whole number from 0 to 1024, found 'x'");
  ExpectError(LoadServer({"--state-dir=/s", "more"}), "autoloco-server: argument 'more': expected a flag");
  ExpectError(LoadServer({}),
              "autoloco-server: server.state_dir: required, but not given; set it in the config file, "
              "as --state-dir or as AUTOLOCO__SERVER__STATE_DIR");
  ExpectError(LoadWorker({}), "autoloco-worker: worker.data: required");
  ExpectError(LoadWorker({"--data=/d", "--min-workers=2"}), "autoloco-worker: flag '--min-workers': unknown");
}

TEST(LoadTest, CrossFieldErrorsNameTheOrigin) {
  const std::string path = WriteFile("lease.yaml", "run:\n  rounds:\n    heartbeat_seconds: 14\n");
  ExpectError(LoadServer({"--config", path, "--state-dir=/s"}),
              absl::StrCat("autoloco-server: ", path, ":3:24: run.rounds.heartbeat_seconds: expected at most a third"));
  ExpectError(LoadServer({"--state-dir=/s", "--listen=0.0.0.0:7070"}),
              "autoloco-server: flag --listen: server.listen: expected a loopback address, found '0.0.0.0:7070'");
  ExpectError(
      LoadServer({"--state-dir=/s", "--lease-seconds=3"}),
      "autoloco-server: run.rounds.heartbeat_seconds: expected at most a third of run.rounds.lease_seconds (3)");
}

TEST(LoadTest, EachProgramPassesOverTheOther) {
  const Texts environment = {"AUTOLOCO__SERVER__STATE_DIR=/s", "AUTOLOCO__WORKER__DATA=/d", "AUTOLOCO__RUN__SEED=7",
                             "AUTOLOCO_SERVER_PORT=tcp://1.2.3.4:7070"};
  EXPECT_FALSE(LoadServer({}, environment).exits);
  EXPECT_FALSE(LoadWorker({}, environment).exits);
}

TEST(LoadTest, CheckConfig) {
  const Outcome valid = LoadServer({"--check-config", "--state-dir=/s"});
  EXPECT_TRUE(valid.exits);
  EXPECT_EQ(valid.exit_code, 0);
  EXPECT_EQ(valid.out, "autoloco-server: the configuration is valid\n");
  EXPECT_EQ(valid.err, "");

  const Outcome warned = LoadServer({"--check-config", "--state-dir=/s", "--warmup-steps=5000", "--steps=2000"});
  EXPECT_EQ(warned.exit_code, 0);
  EXPECT_THAT(warned.err,
              AllOf(StartsWith("autoloco-server: warning: flag --warmup-steps: run.inner.warmup_steps: 5000 is more"),
                    HasSubstr("\nautoloco-server: warning: flag --steps: run.interval.steps: 2000 is more")));

  ExpectError(LoadServer({"--check-config", "--state-dir=/s", "--heads=3"}), "autoloco-server: run.model: ");
}

TEST(LoadTest, PrintConfigRoundTrips) {
  const Outcome first =
      LoadServer({"--print-config", "--state-dir", "a \"b\" \\ c", "--preset=60m", "--seed=18446744073709551615",
                  "--outer.learning-rate=0.1234567890123", "--metrics-listen=", "--delta=bf16"});
  ASSERT_TRUE(first.exits);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Outcome second = LoadServer({"--print-config", "--config", WriteFile("printed.yaml", first.out)});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(second.out, first.out);
  EXPECT_THAT(first.out, AllOf(StartsWith("run:\n  name: \"autoloco\"\n"), HasSubstr("\n    preset: 60m\n"),
                               HasSubstr("\n    learning_rate: 0.1234567890123\n"),
                               HasSubstr("\nserver:\n  listen: \"127.0.0.1:7070\"\n")));

  const Outcome worker = LoadWorker({"--print-config", "--data=/d"});
  ASSERT_EQ(worker.exit_code, 0) << worker.err;
  const Outcome again = LoadWorker({"--print-config", "--config", WriteFile("worker.yaml", worker.out)});
  EXPECT_EQ(again.out, worker.out);
}

TEST(LoadTest, PrintedConfigGivesTheSameMessage) {
  v1::ServerConfig first;
  ASSERT_FALSE(LoadServerConfig({"--state-dir=/s"}, {}, &first).exits);
  const Outcome printed = LoadServer({"--state-dir=/s", "--print-config"});
  v1::ServerConfig second;
  ASSERT_FALSE(LoadServerConfig({"--config", WriteFile("same.yaml", printed.out)}, {}, &second).exits);
  EXPECT_EQ(first.SerializeAsString(), second.SerializeAsString());
}

TEST(LoadTest, HelpAndVersion) {
  for (const Texts& arguments : {Texts{"--help"}, Texts{"-h"}, Texts{"--nonsense", "--help"}}) {
    const Outcome help = LoadServer(arguments, {"AUTOLOCO__BROKEN=1"});
    EXPECT_TRUE(help.exits);
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.out, StartsWith("Usage: autoloco-server "));
    EXPECT_EQ(help.err, "");
  }
  EXPECT_THAT(LoadWorker({"--help"}).out, AllOf(StartsWith("Usage: autoloco-worker "), HasSubstr("(worker.data)")));
  const Outcome version = LoadWorker({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, ::testing::MatchesRegex("autoloco-worker [0-9.]+\n"));
}

TEST(LoadTest, ProgramArgumentsLeaveOutTheProgram) {
  char program[] = "autoloco-server";
  char flag[] = "--seed=1";
  char* argv[] = {program, flag, nullptr};
  EXPECT_THAT(ProgramArguments(2, argv), ::testing::ElementsAre("--seed=1"));
  EXPECT_THAT(ProgramArguments(0, argv), ::testing::IsEmpty());
}

}  // namespace
}  // namespace autoloco
