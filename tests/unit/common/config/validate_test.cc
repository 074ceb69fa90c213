#include "common/config/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/config/load.h"

namespace autoloco {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

v1::ServerConfig ValidServer() {
  v1::ServerConfig config;
  const Outcome outcome = LoadServerConfig({"--state-dir=/s"}, {}, &config);
  EXPECT_FALSE(outcome.exits) << outcome.err;
  return config;
}

v1::WorkerConfig ValidWorker() {
  v1::WorkerConfig config;
  const Outcome outcome = LoadWorkerConfig({"--data=/d"}, {}, &config);
  EXPECT_FALSE(outcome.exits) << outcome.err;
  return config;
}

std::vector<std::string> Texts(const std::vector<Problem>& problems) {
  std::vector<std::string> texts;
  for (const Problem& problem : problems) texts.push_back(absl::StrCat(problem.key, ": ", problem.message));
  return texts;
}

TEST(ValidateTest, DefaultsAreValidWithoutWarnings) {
  const Validation server = ValidateServerConfig(ValidServer());
  EXPECT_THAT(Texts(server.errors), IsEmpty());
  EXPECT_THAT(Texts(server.warnings), IsEmpty());
  const Validation worker = ValidateWorkerConfig(ValidWorker());
  EXPECT_THAT(Texts(worker.errors), IsEmpty());
  EXPECT_THAT(Texts(worker.warnings), IsEmpty());
}

struct ServerCase {
  void (*change)(v1::ServerConfig*);
  const char* problem;
};

TEST(ValidateTest, ServerErrors) {
  using Config = v1::ServerConfig;
  for (const ServerCase& c : {
           ServerCase{[](Config* c) { c->mutable_run()->mutable_model()->set_heads(3); }, "run.model: "},
           ServerCase{[](Config* c) { c->mutable_run()->mutable_interval()->set_steps_min(501); },
                      "run.interval.steps_min: expected at most run.interval.steps (500), found 501"},
           ServerCase{[](Config* c) { c->mutable_run()->mutable_interval()->set_steps_max(499); },
                      "run.interval.steps_max: expected at least run.interval.steps (500), found 499"},
           ServerCase{
               [](Config* c) { c->mutable_run()->mutable_interval()->set_policy(v1::IntervalConfig::POLICY_RANDOM); },
               "run.interval.target_rounds: expected the number of rounds under policy random, found 0"},
           ServerCase{[](Config* c) { c->mutable_run()->mutable_interval()->set_target_rounds(1001); },
                      "run.interval.target_rounds: expected at most run.total_inner_steps (1000), found 1001"},
           ServerCase{
               [](Config* c) { c->mutable_run()->mutable_interval()->set_policy(v1::IntervalConfig::POLICY_REPLAY); },
               "run.interval.replay: expected the intervals under policy replay, found none"},
           ServerCase{[](Config* c) { c->mutable_run()->mutable_interval()->set_replay("20,0"); },
                      "run.interval.replay: expected intervals of 1 to 16000000 steps"},
           ServerCase{[](Config* c) {
                        c->mutable_run()->mutable_outer()->set_nesterov(false);
                        c->mutable_run()->mutable_outer()->set_correction(v1::OuterConfig::CORRECTION_BOUNDED);
                      },
                      "run.outer.correction: expected auto or none without run.outer.nesterov"},
           ServerCase{[](Config* c) { c->mutable_run()->mutable_model()->set_kv_heads(3); }, "run.model: "},
           ServerCase{[](Config* c) { c->mutable_run()->mutable_model()->set_vocab_size(255); },
                      "run.model.vocab_size: expected at least 256 with run.data.tokenizer bytes, found 255"},
           ServerCase{
               [](Config* c) { c->mutable_run()->mutable_rounds()->set_heartbeat_seconds(5.1); },
               "run.rounds.heartbeat_seconds: expected at most a third of run.rounds.lease_seconds (15), so that "
               "one lost report does not end a lease, found 5.1"},
           ServerCase{[](Config* c) {
                        c->mutable_run()->mutable_rounds()->set_min_workers(3);
                        c->mutable_run()->mutable_rounds()->set_start_workers(2);
                      },
                      "run.rounds.start_workers: expected 0 or at least run.rounds.min_workers (3), found 2"},
           ServerCase{[](Config* c) {
                        c->mutable_run()->mutable_rounds()->set_strict(true);
                        c->mutable_run()->mutable_rounds()->set_start_workers(2);
                      },
                      "run.rounds.start_workers: expected 0 or run.rounds.min_workers (1), since a strict run"},
           ServerCase{[](Config* c) { c->mutable_server()->set_listen("7070"); },
                      "server.listen: expected host:port, such as 127.0.0.1:7070"},
           ServerCase{[](Config* c) { c->mutable_server()->set_listen(""); }, "server.listen: expected host:port"},
           ServerCase{[](Config* c) { c->mutable_server()->set_listen("0.0.0.0:7070"); },
                      "server.listen: expected a loopback address, found '0.0.0.0:7070', where everything would travel "
                      "unencrypted; --insecure (server.insecure: true) allows it on a network you trust"},
           ServerCase{[](Config* c) { c->mutable_server()->set_metrics_listen("[::]:7071"); },
                      "server.metrics_listen: expected a loopback address, found '[::]:7071'"},
           ServerCase{[](Config* c) { c->mutable_server()->set_metrics_listen("127.0.0.1:7070"); },
                      "server.metrics_listen: expected another port than server.listen (127.0.0.1:7070)"},
           ServerCase{[](Config* c) {
                        c->mutable_run()->mutable_rounds()->set_min_workers(3);
                        c->mutable_server()->set_max_workers(2);
                      },
                      "server.max_workers: expected at least run.rounds.min_workers (3), found 2"},
           ServerCase{[](Config* c) { c->mutable_run()->mutable_rounds()->set_start_workers(300); },
                      "server.max_workers: expected at least run.rounds.start_workers (300), found 256"},
           ServerCase{
               [](Config* c) {
                 c->mutable_server()->set_max_chunk_bytes(4000000);
                 c->mutable_server()->set_max_push_bytes_in_flight(1048576);
               },
               "server.max_push_bytes_in_flight: expected at least server.max_chunk_bytes (4000000), found 1048576"},
       }) {
    SCOPED_TRACE(c.problem);
    v1::ServerConfig config = ValidServer();
    c.change(&config);
    EXPECT_THAT(Texts(ValidateServerConfig(config).errors), ::testing::ElementsAre(StartsWith(c.problem)));
  }
}

TEST(ValidateTest, MembershipErrors) {
  v1::ServerConfig config = ValidServer();
  config.mutable_run()->mutable_rounds()->set_strict(true);
  config.mutable_run()->mutable_membership()->set_late(v1::MembershipConfig::LATE_APPLY);
  config.mutable_run()->mutable_outer()->set_norm_rounds(4);
  EXPECT_THAT(
      Texts(ValidateServerConfig(config).errors),
      ::testing::ElementsAre("run.membership.late: expected drop in a strict run, where no delta is late, found apply",
                             "run.outer.norm_rounds_min: expected at most run.outer.norm_rounds (4), found 5"));
}

TEST(ValidateTest, ServerWarnings) {
  using Config = v1::ServerConfig;
  for (const ServerCase& c : {
           ServerCase{[](Config* c) { c->mutable_run()->mutable_inner()->set_warmup_steps(1001); },
                      "run.inner.warmup_steps: 1001 is more than run.total_inner_steps (1000)"},
           ServerCase{[](Config* c) { c->mutable_run()->mutable_interval()->set_steps(1001); },
                      "run.interval.steps: 1001 is more than run.total_inner_steps (1000)"},
           ServerCase{[](Config* c) { c->mutable_run()->mutable_model()->set_vocab_size(32000); },
                      "run.model.vocab_size: run.data.tokenizer bytes uses 256 of 32000 rows"},
           ServerCase{[](Config* c) { c->mutable_run()->mutable_membership()->set_deadline_seconds(14); },
                      "run.membership.deadline_seconds: 14 is less than run.rounds.lease_seconds (15)"},
           // 1.2 billion values of 1.6 bits at 10 Mbit/s.
           ServerCase{[](Config* c) {
                        c->mutable_run()->mutable_membership()->set_deadline_seconds(100);
                        c->mutable_run()->mutable_model()->set_width(2048);
                        c->mutable_run()->mutable_model()->set_layers(24);
                        c->mutable_run()->mutable_model()->set_mlp_hidden(5504);
                      },
                      "run.membership.deadline_seconds: 100 is less than the "},
       }) {
    SCOPED_TRACE(c.problem);
    v1::ServerConfig config = ValidServer();
    c.change(&config);
    const Validation validation = ValidateServerConfig(config);
    EXPECT_THAT(Texts(validation.errors), IsEmpty());
    EXPECT_THAT(Texts(validation.warnings), ::testing::ElementsAre(StartsWith(c.problem)));
  }
}

TEST(ValidateTest, InsecureAllowsOtherAddresses) {
  v1::ServerConfig server = ValidServer();
  server.mutable_server()->set_listen("0.0.0.0:7070");
  server.mutable_server()->set_metrics_listen("0.0.0.0:7071");
  server.mutable_server()->set_insecure(true);
  EXPECT_THAT(Texts(ValidateServerConfig(server).errors), IsEmpty());
  v1::WorkerConfig worker = ValidWorker();
  worker.mutable_worker()->set_server("server.example.org:7070");
  worker.mutable_worker()->set_insecure(true);
  EXPECT_THAT(Texts(ValidateWorkerConfig(worker).errors), IsEmpty());
}

TEST(ValidateTest, PortsMayBothBeAnyFreeOne) {
  v1::ServerConfig config = ValidServer();
  config.mutable_server()->set_listen("127.0.0.1:0");
  config.mutable_server()->set_metrics_listen("127.0.0.1:0");
  EXPECT_THAT(Texts(ValidateServerConfig(config).errors), IsEmpty());
  config.mutable_server()->set_metrics_listen("");
  EXPECT_THAT(Texts(ValidateServerConfig(config).errors), IsEmpty());
}

TEST(ValidateTest, WorkerErrors) {
  v1::WorkerConfig config = ValidWorker();
  config.mutable_worker()->set_server("10.0.0.1:7070");
  EXPECT_THAT(Texts(ValidateWorkerConfig(config).errors),
              ::testing::ElementsAre(HasSubstr("worker.server: expected a loopback address, found '10.0.0.1:7070'")));
  config.mutable_worker()->set_server("localhost:0");
  EXPECT_THAT(Texts(ValidateWorkerConfig(config).errors), ::testing::ElementsAre(HasSubstr("a port from 1 to 65535")));
  config.mutable_worker()->set_server("localhost");
  EXPECT_THAT(Texts(ValidateWorkerConfig(config).errors), ::testing::ElementsAre(HasSubstr("expected host:port")));
}

TEST(ValidateTest, ReceivedRun) {
  const v1::RunConfig valid = ValidServer().run();
  EXPECT_TRUE(ValidateReceivedRun(valid).ok());

  v1::RunConfig run = valid;
  run.mutable_outer()->clear_learning_rate();
  EXPECT_THAT(std::string(ValidateReceivedRun(run).message()),
              HasSubstr("outer.learning_rate: expected a number above 0 and at most 10, found it not set"));
  run = valid;
  run.mutable_outer()->set_learning_rate(1e300);
  EXPECT_THAT(std::string(ValidateReceivedRun(run).message()), StartsWith("outer.learning_rate: expected a number"));
  run = valid;
  run.mutable_inner()->set_schedule(static_cast<v1::InnerConfig::Schedule>(99));
  EXPECT_THAT(std::string(ValidateReceivedRun(run).message()), StartsWith("inner.schedule: expected one of"));
  run = valid;
  run.set_name("../x");
  EXPECT_THAT(std::string(ValidateReceivedRun(run).message()), StartsWith("name: expected text matching"));
  run = valid;
  run.mutable_model()->set_heads(3);
  EXPECT_THAT(std::string(ValidateReceivedRun(run).message()), StartsWith("model: "));
  run = valid;
  run.mutable_rounds()->set_heartbeat_seconds(10);
  EXPECT_THAT(std::string(ValidateReceivedRun(run).message()),
              StartsWith("rounds.heartbeat_seconds: expected at most a third of rounds.lease_seconds (15)"));
  EXPECT_FALSE(ValidateReceivedRun(v1::RunConfig()).ok());
}

}  // namespace
}  // namespace autoloco
