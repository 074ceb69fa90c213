// Unequal and unreliable workers: nobody waits for the slow, the frozen and the dead longer than promised; who comes in
// the middle of a round has its part in it; who is evicted stays out.
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/cluster.h"

namespace autoloco::test {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kGrace = absl::Seconds(3);  // the default of disconnect_grace_seconds
constexpr int kSlack = 3;                            // on a loaded machine
constexpr int kStepMs = 100;

double Number(const std::string& line, absl::string_view key) {
  double value = -1;
  EXPECT_TRUE(absl::SimpleAtod(LogValue(line, key), &value)) << key << " of " << line;
  return value;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? -1 : values[values.size() / 2];
}

// One worker is four times slower. It does a quarter of the steps from the second round on, everybody's work counts,
// and the others wait for less than a fifth of a round.
TEST(ElasticTest, AWorkerFourTimesSlowerDoesAQuarterAndIsHardlyWaitedFor) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(200, 20, 4), WithMetrics()));
  std::vector<std::unique_ptr<Process>> workers;
  for (const char* name : {"dc1", "dc2", "dc3"}) {
    workers.push_back(cluster.StartWorker({.name = name, .step_ms = kStepMs}));
  }
  workers.push_back(cluster.StartWorker({.name = "slow", .step_ms = 4 * kStepMs}));
  const v1::Status status =
      cluster.WaitFor("round 7 under way", [](const v1::Status& s) { return s.version() >= 7 && s.assigned() == 4; });
  const v1::WorkerStatus slow = FindWorker(status, "slow");
  EXPECT_GE(slow.steps_target(), 3u);
  EXPECT_LE(slow.steps_target(), 7u);
  EXPECT_EQ(FindWorker(status, "dc1").steps_target(), 20u);
  EXPECT_GT(slow.share(), 0.03);  // 5 of 65 steps
  EXPECT_LT(slow.share(), 0.12);
  EXPECT_GT(FindWorker(status, "dc1").share(), 0.25);
  const std::string metrics = ScrapeMetrics(cluster.metrics());
  EXPECT_GT(MetricValue(metrics, "autoloco_worker_step_seconds{worker=\"slow\"}"), 0.3);
  EXPECT_EQ(MetricValue(ScrapeMetricsUntil(cluster.metrics(), "autoloco_round_quorum", 3), "autoloco_round_quorum"), 3);

  std::vector<double> waits;
  std::vector<double> applied;
  for (const std::string& line : cluster.ServerLines(" round_committed ")) {
    if (Number(line, "round") < 4) continue;
    waits.push_back(Number(line, "wait_seconds") / Number(line, "seconds"));
    applied.push_back(Number(line, "applied"));
  }
  ASSERT_GE(waits.size(), 3u);
  EXPECT_LT(Median(waits), 0.2) << cluster.server().Log();
  EXPECT_EQ(Median(applied), 4);
}

// A frozen worker keeps its session and says nothing. Every round closes by its deadline, until the lease has expired;
// once it thaws it comes back by itself.
TEST(ElasticTest, AFrozenWorkerDelaysARoundByTheDeadlineAtMost) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(4000, 10, 3), {"--start-workers", "4", "--lease-seconds", "6"}));
  std::vector<std::unique_ptr<Process>> workers;
  for (const char* name : {"dc1", "dc2", "dc3", "frozen"}) {
    workers.push_back(cluster.StartWorker({.name = name, .step_ms = kStepMs}));
  }
  cluster.WaitFor("round 2 under way", [](const v1::Status& s) { return s.version() >= 2 && s.assigned() == 4; });
  workers.back()->Signal(SIGSTOP);
  cluster.WaitFor("the lease has expired",
                  [](const v1::Status& s) { return FindWorker(s, "frozen").state() == "left"; });
  std::vector<double> usual;
  std::vector<double> delayed;
  for (const std::string& line : cluster.ServerLines(" round_committed ")) {
    (Number(line, "applied") < Number(line, "expected") ? delayed : usual).push_back(Number(line, "seconds"));
  }
  ASSERT_FALSE(delayed.empty()) << cluster.server().Log();
  ASSERT_FALSE(usual.empty()) << cluster.server().Log();
  EXPECT_FALSE(cluster.ServerLines(" close reason=deadline ").empty()) << cluster.server().Log();
  EXPECT_EQ(cluster.ServerLines(" reason=disconnect_grace ").size(), 0u);
  // The slack of rounds of a second is its floor of a second, or half a round where arrivals are spread.
  for (const double seconds : delayed) EXPECT_LT(seconds, kSlack * (Median(usual) + 1)) << cluster.server().Log();

  workers.back()->Signal(SIGCONT);
  cluster.WaitFor("all four count again",
                  [](const v1::Status& s) { return s.applied() == 4 && FindWorker(s, "frozen").state() != "left"; });
}

// Killed in the middle of its interval: what the others do once they are done is one grace at most.
TEST(ElasticTest, AWorkerKilledInItsIntervalCostsOneGrace) {
  Cluster cluster;
  cluster.StartServer(SmallRun(4000, 20, 3));
  const auto first = cluster.StartWorker({.name = "dc1", .step_ms = kStepMs});
  const auto second = cluster.StartWorker({.name = "dc2", .step_ms = kStepMs});
  const auto victim = cluster.StartWorker({.name = "dc3", .step_ms = kStepMs});
  const v1::Status before = cluster.WaitFor("dc3 in the middle of its interval", [](const v1::Status& s) {
    return s.assigned() == 3 && IsTraining(s, "dc3") && FindWorker(s, "dc3").steps_done() >= 5 && s.contributed() == 0;
  });
  victim->Signal(SIGKILL);
  cluster.WaitFor("the others have delivered",
                  [&before](const v1::Status& s) { return s.version() > before.version() || s.contributed() == 2; });
  const Instant delivered = MonotonicClock()->Now();
  const v1::Status after = cluster.WaitForVersion(before.version() + 1);
  EXPECT_LT(MonotonicClock()->Now() - delivered, kSlack * kGrace);
  EXPECT_EQ(after.rounds_aborted(), 0u);
}

TEST(ElasticTest, AJoinerHasItsPartInTheRoundItCameInto) {
  Cluster cluster;
  cluster.StartServer(SmallRun(4000, 60, 2));  // long enough for a process to start in the middle
  const auto first = cluster.StartWorker({.name = "dc1", .step_ms = kStepMs});
  const auto second = cluster.StartWorker({.name = "dc2", .step_ms = kStepMs});
  cluster.WaitFor("round 1 just opened", [](const v1::Status& s) { return s.version() >= 1 && s.assigned() == 2; });
  const auto joiner = cluster.StartWorker({.name = "dc3", .step_ms = kStepMs});
  cluster.WaitFor("a commit of three", [](const v1::Status& s) { return s.applied() == 3; });
  const std::vector<std::string> joins = cluster.ServerLines(" reason=joins_round ");
  ASSERT_FALSE(joins.empty()) << cluster.server().Log();
  EXPECT_EQ(LogValue(joins[0], "worker"), "dc3");
  const std::string round = LogValue(joins[0], "round");
  for (const std::string& line : cluster.ServerLines(" round_committed ")) {
    if (LogValue(line, "round") != round) continue;
    EXPECT_EQ(LogValue(line, "applied"), "3") << cluster.server().Log();
  }
}

TEST(ElasticTest, AnEvictedWorkerEndsAndStaysOutUntilReadmitted) {
  Cluster cluster;
  cluster.StartServer(SmallRun(4000, 10, 1));
  const auto stays = cluster.StartWorker({.name = "dc1", .step_ms = kStepMs});
  const auto leaves = cluster.StartWorker({.name = "dc2", .step_ms = kStepMs});
  cluster.WaitFor("both in a round", [](const v1::Status& s) { return s.assigned() == 2; });
  const Ended evicted = RunProgram(kOperator, {"evict", "dc2", "--server", cluster.address()});
  EXPECT_EQ(evicted.exit_code, 0) << evicted.log;
  EXPECT_EQ(evicted.output, "dc2 is evicted\n");
  EXPECT_EQ(ExitCode(leaves.get()), 2) << leaves->Log();
  EXPECT_THAT(leaves->Log(), HasSubstr("evicted by the operator"));
  const v1::Status status =
      cluster.WaitFor("a round of one", [](const v1::Status& s) { return s.applied() == 1 && s.assigned() == 1; });
  EXPECT_THAT(FindWorker(status, "dc2").reason(), HasSubstr("evicted"));

  const auto again = cluster.StartWorker({.name = "dc2", .step_ms = kStepMs});
  EXPECT_EQ(ExitCode(again.get()), 2) << again->Log();
  EXPECT_EQ(RunProgram(kOperator, {"evict", "dc2", "--readmit", "--server", cluster.address()}).exit_code, 0);
  const auto readmitted = cluster.StartWorker({.name = "dc2", .step_ms = kStepMs});
  cluster.WaitFor("a commit of two", [](const v1::Status& s) { return s.applied() == 2; });

  const Ended unknown = RunProgram(kOperator, {"evict", "nobody", "--server", cluster.address()});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.log, HasSubstr("no worker is known by the name nobody"));
  EXPECT_EQ(RunProgram(kOperator, {"evict"}).exit_code, 2);
}

}  // namespace
}  // namespace autoloco::test
