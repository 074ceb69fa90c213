// A whole run with two workers: how it is cut into rounds, how it ends, and that status, metrics and checkpoint tell
// the same story of it.
#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/cluster.h"

namespace autoloco::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Field(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return absl::StrCat("no ", name);
  return found->is_string() ? found->get<std::string>() : found->dump();
}

// "5 inner steps for a, b" -> 5, of every round opened, in order.
std::vector<int> IntervalsOpened(Cluster* cluster) {
  std::vector<int> intervals;
  for (const std::string& line : cluster->ServerLines(" reason=opened ")) {
    const std::string detail = LogValue(line, "detail");
    int steps = 0;
    EXPECT_TRUE(absl::SimpleAtoi(detail.substr(0, detail.find(' ')), &steps)) << line;
    intervals.push_back(steps);
  }
  return intervals;
}

TEST(RunTest, TwentyThreeStepsByFiveEndInFiveRounds) {
  Cluster cluster;
  cluster.StartServer(SmallRun(23, 5, 2));
  const auto first = cluster.StartWorker({.name = "dc1"});
  const auto second = cluster.StartWorker({.name = "dc2"});
  EXPECT_EQ(ExitCode(first.get()), 0) << first->Log();
  EXPECT_EQ(ExitCode(second.get()), 0) << second->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();

  EXPECT_THAT(IntervalsOpened(&cluster), ElementsAre(5, 5, 5, 5, 3)) << cluster.server().Log();
  const std::vector<std::string> commits = cluster.ServerLines(" round_committed ");
  ASSERT_EQ(commits.size(), 5u);
  for (const std::string& commit : commits) EXPECT_EQ(LogValue(commit, "applied"), "2") << commit;
  const StoredModel model = NewestCheckpoint(cluster.state_dir());
  EXPECT_EQ(model.inner_step, 23u);
  EXPECT_EQ(model.digest, LogValue(commits.back(), "digest"));
}

// Every coding of deltas goes the whole way: encoded by a worker, verified on arrival, decoded in the commit.
class CodingTest : public ::testing::TestWithParam<Arguments> {};

TEST_P(CodingTest, ARunEndsWithWhatItsWorkersSent) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(6, 3, 1), GetParam()));
  const auto worker = cluster.StartWorker({.name = "dc1"});
  EXPECT_EQ(ExitCode(worker.get()), 0) << worker->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  const std::vector<std::string> commits = cluster.ServerLines(" round_committed ");
  ASSERT_EQ(commits.size(), 2u) << cluster.server().Log();
  for (const std::string& commit : commits) EXPECT_EQ(LogValue(commit, "applied"), "1") << commit;
  EXPECT_NE(LogValue(commits[0], "digest"), LogValue(commits[1], "digest"));
}

INSTANTIATE_TEST_SUITE_P(Codecs, CodingTest,
                         ::testing::Values(Arguments{"--codec.delta", "bf16"}, Arguments{"--codec.delta", "int8"},
                                           Arguments{"--codec.step", "0.5"}, Arguments{"--codec.step", "2.5"},
                                           Arguments{"--codec.broadcast", "bf16"},
                                           Arguments{"--codec.broadcast", "int8"},
                                           Arguments{"--codec.broadcast_step", "2.5"},
                                           Arguments{"--codec.delta", "fp32"}, Arguments{"--codec.broadcast", "fp32"},
                                           Arguments{"--codec.delta", "fp32", "--codec.broadcast", "fp32"}));

// A version goes out as what the one before lacks; what the workers hold is not the exact parameters, and the same
// everywhere.
TEST(BroadcastTest, WorkersFollowTheViewByBroadcasts) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(30, 3, 2), Concat(WithMetrics(), {"--no-exit-when-done"})));
  const auto first = cluster.StartWorker({.name = "dc1"});
  const auto second = cluster.StartWorker({.name = "dc2"});
  EXPECT_EQ(ExitCode(first.get()), 0) << first->Log();
  EXPECT_EQ(ExitCode(second.get()), 0) << second->Log();
  const v1::Status status =
      cluster.WaitFor("the run done", [](const v1::Status& s) { return s.phase() == v1::Status::PHASE_DONE; });
  EXPECT_EQ(status.version(), 10u);
  EXPECT_NE(status.view_digest(), status.params_digest());
  // Twice the whole view, and ten broadcasts of less than 3 bits a value.
  const std::uint64_t bytes_max = 2 * (4 + 10 * 3.0 / 8) * static_cast<double>(status.parameters());
  EXPECT_LT(status.bytes_down(), bytes_max);
  EXPECT_EQ(MetricValue(ScrapeMetrics(cluster.metrics()), "autoloco_view_mismatches_total"), 0);
  EXPECT_LT(status.evaluations(status.evaluations_size() - 1).loss(), status.evaluations(0).loss());
  const Ended text = RunProgram(kOperator, {"status", "--server", cluster.address()});
  EXPECT_THAT(text.output, HasSubstr(status.view_digest()));
  cluster.server().Signal(SIGTERM);
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  const Ended verified = RunProgram(kOperator, {"verify", cluster.state_dir()});
  EXPECT_EQ(verified.exit_code, 0) << verified.output << verified.log;
}

// Shared by the tests of one finished run whose server still answers.
class FinishedRunTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new Cluster;
    cluster_->StartServer(Concat(SmallRun(23, 5, 2), Concat(WithMetrics(), {"--no-exit-when-done"})));
    const auto first = cluster_->StartWorker({.name = "dc1"});
    const auto second = cluster_->StartWorker({.name = "dc2"});
    EXPECT_EQ(ExitCode(first.get()), 0) << first->Log();
    EXPECT_EQ(ExitCode(second.get()), 0) << second->Log();
    status_ =
        cluster_->WaitFor("the run done", [](const v1::Status& s) { return s.phase() == v1::Status::PHASE_DONE; });
  }
  static void TearDownTestSuite() {
    cluster_->server().Signal(SIGTERM);
    EXPECT_EQ(ExitCode(&cluster_->server()), 0) << cluster_->server().Log();
    delete cluster_;
  }

  static Cluster* cluster_;
  static v1::Status status_;
};

Cluster* FinishedRunTest::cluster_ = nullptr;
v1::Status FinishedRunTest::status_;

TEST_F(FinishedRunTest, TheCheckpointHasTheDigestOfTheStatus) {
  const StoredModel model = NewestCheckpoint(cluster_->state_dir());
  EXPECT_EQ(model.inner_step, 23u);
  EXPECT_EQ(model.digest, status_.params_digest());
  EXPECT_EQ(model.manifest_digest, status_.params_digest());
  EXPECT_EQ(model.path, status_.checkpoint());
}

TEST_F(FinishedRunTest, TheHeldOutLossFell) {
  ASSERT_EQ(status_.evaluations_size(), 6);  // versions 0 to 5
  EXPECT_EQ(status_.evaluations(5).version(), 5u);
  EXPECT_EQ(status_.evaluations(5).inner_step(), 23u);
  EXPECT_LT(status_.evaluations(5).loss(), status_.evaluations(0).loss());
}

TEST_F(FinishedRunTest, StatusAsJson) {
  const Ended ended = RunProgram(kOperator, {"status", "--server", cluster_->address(), "--json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.log;
  const nlohmann::json status = nlohmann::json::parse(ended.output, nullptr, false);
  ASSERT_TRUE(status.is_object()) << ended.output;
  EXPECT_EQ(Field(status, "phase"), "PHASE_DONE");
  EXPECT_EQ(Field(status, "version"), "5");
  EXPECT_EQ(Field(status, "rounds_committed"), "5");
  EXPECT_EQ(Field(status, "rounds_aborted"), "0");
  EXPECT_EQ(Field(status, "inner_steps_done"), "23");
  EXPECT_EQ(Field(status, "inner_steps_total"), "23");
  EXPECT_EQ(Field(status, "worker_inner_steps"), "46");
  EXPECT_EQ(Field(status, "applied"), "2");
  EXPECT_EQ(Field(status, "parameters"), "110912");
  EXPECT_EQ(Field(status, "params_digest"), status_.params_digest());
  EXPECT_EQ(Field(status, "run_id"), LogValue(cluster_->serving(), "run_id"));
  EXPECT_EQ(Field(status, "checkpoint"), NewestCheckpoint(cluster_->state_dir()).path);
  ASSERT_GE(status.at("workers").size(), 2u);
  EXPECT_EQ(Field(status.at("workers").at(0), "name"), "dc1");
  EXPECT_EQ(Field(status.at("workers").at(0), "state"), "left");
  ASSERT_EQ(status.at("evaluations").size(), 6u);
  EXPECT_GT(status_.bytes_up(), 0u);
  EXPECT_EQ(Field(status, "bytes_up"), absl::StrCat(status_.bytes_up()));
  EXPECT_EQ(Field(status, "bytes_down"), absl::StrCat(status_.bytes_down()));
}

TEST_F(FinishedRunTest, StatusAsText) {
  const Ended ended = RunProgram(kOperator, {"status", "--server", cluster_->address()});
  ASSERT_EQ(ended.exit_code, 0) << ended.log;
  EXPECT_THAT(ended.output, HasSubstr(status_.params_digest()));
  EXPECT_THAT(ended.output, HasSubstr("phase       done"));
  EXPECT_THAT(ended.output, HasSubstr("inner steps 23 of 23 (100.0 %)"));
  EXPECT_THAT(ended.output, HasSubstr("5 committed, 0 aborted"));
  EXPECT_THAT(ended.output, HasSubstr("dc1"));
  EXPECT_THAT(ended.output, HasSubstr("dc2"));
}

TEST_F(FinishedRunTest, Metrics) {
  // 23 steps of 2 windows of 64 tokens.
  constexpr int kTokens = 23 * 2 * 64;
  const std::string metrics = ScrapeMetricsUntil(cluster_->metrics(), "autoloco_tokens_total{worker=\"dc2\"}", kTokens);
  EXPECT_EQ(MetricValue(metrics, "autoloco_rounds_total{outcome=\"committed\"}"), 5) << metrics;
  EXPECT_EQ(MetricValue(metrics, "autoloco_rounds_total{outcome=\"aborted\"}"), 0);
  EXPECT_EQ(MetricValue(metrics, "autoloco_pushes_total{outcome=\"accepted\"}"), 10);
  EXPECT_EQ(MetricValue(metrics, "autoloco_version"), 5);
  EXPECT_EQ(MetricValue(metrics, "autoloco_round_participants"), 2);
  EXPECT_EQ(MetricValue(metrics, "autoloco_commit_seconds_count"), 5);
  const double broadcast_bits = 8 * MetricValue(metrics, "autoloco_broadcast_bytes_per_value");
  EXPECT_GT(broadcast_bits, 0.5);  // the default coding's
  EXPECT_LT(broadcast_bits, 2.5);
  const double broadcast_error = MetricValue(metrics, "autoloco_broadcast_error_ratio");
  EXPECT_GT(broadcast_error, 0.01);
  EXPECT_LT(broadcast_error, 0.5);
  EXPECT_EQ(MetricValue(metrics, "autoloco_tokens_total{worker=\"dc1\"}"), kTokens) << metrics;
  EXPECT_EQ(MetricValue(metrics, "autoloco_raw_bytes_total{direction=\"push\"}"), 10.0 * 4 * 110912);
  EXPECT_GT(MetricValue(metrics, "autoloco_wire_bytes_total{direction=\"pull\"}"), 0);
}

TEST_F(FinishedRunTest, MetricsPassPromtool) {
  const auto which = Process::Start({"/bin/sh", "-c", "command -v promtool"}).value();
  if (ExitCode(which.get()) != 0) GTEST_SKIP() << "promtool is not installed";
  const std::string file = cluster_->folder() + "/metrics.txt";
  ASSERT_TRUE(WriteFileAtomically(file, ScrapeMetrics(cluster_->metrics())).ok());
  const auto check = Process::Start({"/bin/sh", "-c", "exec promtool check metrics < \"$0\"", file}).value();
  EXPECT_EQ(ExitCode(check.get()), 0) << check->Output() << check->Log();
}

TEST_F(FinishedRunTest, AWorkerThatComesLateIsSentHome) {
  const auto late = cluster_->StartWorker({.name = "dc3"});
  EXPECT_EQ(ExitCode(late.get()), 0) << late->Log();
}

TEST(StatusTest, NobodyThere) {
  const Ended ended = RunProgram(kOperator, {"status", "--server", "127.0.0.1:1", "--timeout", "1"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.log, HasSubstr("127.0.0.1:1"));
}

}  // namespace
}  // namespace autoloco::test
