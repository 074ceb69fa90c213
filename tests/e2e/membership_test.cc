// Workers that die, come late, come back, leave and share a name: the run goes on, and nobody waits longer than
// promised.
#include <signal.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/cluster.h"

namespace autoloco::test {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kGrace = absl::Seconds(3);        // the default of disconnect_grace_seconds
constexpr absl::Duration kLeaveLimit = absl::Seconds(10);  // a worker that was told to leave
constexpr int kSlack = 3;                                  // on a loaded machine

// Slow enough to be hit in the middle of its interval.
constexpr int kSlowStepMs = 2500;

absl::Duration Since(Instant begin) { return MonotonicClock()->Now() - begin; }

// Whether the line says that the worker has its part in what a round opens with.
bool Names(const std::string& line, const std::string& worker) { return absl::StrContains(line, worker); }

TEST(MembershipTest, AKilledWorkerCostsOneGraceOnly) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(16, 4, 2), {"--start-workers", "3", "--lease-seconds", "6", "--quorum-share", "1"}));
  const auto first = cluster.StartWorker({.name = "dc1", .step_ms = 100});
  const auto second = cluster.StartWorker({.name = "dc2", .step_ms = 100});
  const auto victim = cluster.StartWorker({.name = "dc3", .step_ms = kSlowStepMs});
  const v1::Status before = cluster.WaitFor("dc1 and dc2 delivered, dc3 in its interval", [](const v1::Status& s) {
    return s.contributed() == 2 && s.assigned() == 3 && IsTraining(s, "dc3");
  });
  ASSERT_EQ(before.version(), 0u);
  const std::uint64_t incarnation = FindWorker(before, "dc3").incarnation();
  const Instant killed = MonotonicClock()->Now();
  victim->Signal(SIGKILL);
  EXPECT_EQ(ExitCode(victim.get()), 128 + SIGKILL);
  const v1::Status stale = cluster.WaitFor("dc3 stale", [](const v1::Status& s) {
    return FindWorker(s, "dc3").state() == "stale" || FindWorker(s, "dc3").state() == "left";
  });
  EXPECT_EQ(FindWorker(stale, "dc3").incarnation(), incarnation);

  const v1::Status after = cluster.WaitForVersion(1);
  EXPECT_LT(Since(killed), kSlack * kGrace);
  EXPECT_EQ(after.rounds_aborted(), 0u);
  EXPECT_EQ(cluster.ServerLines(" reason=disconnect_grace ").size(), 1u) << cluster.server().Log();

  EXPECT_EQ(ExitCode(first.get()), 0) << first->Log();
  EXPECT_EQ(ExitCode(second.get()), 0) << second->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  const std::vector<std::string> commits = cluster.ServerLines(" round_committed ");
  ASSERT_EQ(commits.size(), 4u);
  EXPECT_EQ(LogValue(commits[0], "expected"), "3");
  for (const std::string& commit : commits) EXPECT_EQ(LogValue(commit, "applied"), "2") << commit;
  for (std::size_t i = 1; i < commits.size(); ++i) EXPECT_EQ(LogValue(commits[i], "expected"), "2") << commits[i];
}

TEST(MembershipTest, AWorkerStartedInTheMiddleIsInThisRoundOrTheNext) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(400, 4, 2), WithMetrics()));
  const auto first = cluster.StartWorker({.name = "dc1", .step_ms = 200});
  const auto second = cluster.StartWorker({.name = "dc2", .step_ms = 200});
  cluster.WaitFor("round 1 under way", [](const v1::Status& s) {
    return s.version() >= 1 && s.phase() == v1::Status::PHASE_TRAINING && s.assigned() == 2;
  });
  const auto late = cluster.StartWorker({.name = "dc3", .step_ms = 200});
  cluster.WaitFor("a commit of three", [](const v1::Status& s) { return s.applied() == 3; });
  EXPECT_GT(MetricValue(ScrapeMetrics(cluster.metrics()), "autoloco_round_participants"), 2);

  // It had its part in the round it came into, or in the one that opened next, and that was committed with its delta.
  bool joined = false;
  std::string round;
  for (const std::string& line : cluster.ServerLines(" round=")) {
    joined = joined || (Names(line, " reason=joined ") && LogValue(line, "worker") == "dc3");
    const bool gives_work = Names(line, " reason=joins_round ") || Names(line, " reason=opened ");
    if (!joined || !gives_work || !round.empty()) continue;
    round = LogValue(line, "round");
    EXPECT_THAT(line, HasSubstr("dc3"));
  }
  ASSERT_FALSE(round.empty()) << cluster.server().Log();
  bool committed = false;
  for (const std::string& line : cluster.ServerLines(" round_committed ")) {
    if (LogValue(line, "round") != round) continue;
    committed = true;
    EXPECT_EQ(LogValue(line, "applied"), "3") << line;
  }
  EXPECT_TRUE(committed) << cluster.server().Log();
}

TEST(MembershipTest, AKilledWorkerThatComesBackIsANewIncarnation) {
  Cluster cluster;
  cluster.StartServer(SmallRun(4000, 4, 1));
  const auto first = cluster.StartWorker({.name = "dc1", .step_ms = 200});
  auto second = cluster.StartWorker({.name = "dc2", .step_ms = 200});
  const v1::Status before = cluster.WaitFor(
      "dc2 in its interval", [](const v1::Status& s) { return s.assigned() == 2 && IsTraining(s, "dc2"); });
  const std::uint64_t incarnation = FindWorker(before, "dc2").incarnation();
  second->Signal(SIGKILL);
  EXPECT_EQ(ExitCode(second.get()), 128 + SIGKILL);
  second = cluster.StartWorker({.name = "dc2", .step_ms = 200});
  const v1::Status after = cluster.WaitFor("dc2 contributes again", [incarnation](const v1::Status& s) {
    return s.applied() == 2 && FindWorker(s, "dc2").incarnation() > incarnation;
  });
  EXPECT_EQ(after.rounds_aborted(), 0u);
  EXPECT_EQ(after.alive(), 2u);
}

TEST(MembershipTest, SigtermInTheIntervalLeavesAtOnce) {
  Cluster cluster;
  // A single step is less than a twentieth of the interval: there is nothing to send (worker_life_test has the rest).
  cluster.StartServer(Concat(SmallRun(120, 40, 2), {"--start-workers", "3", "--quorum-share", "1"}));
  const auto first = cluster.StartWorker({.name = "dc1", .step_ms = 5});
  const auto second = cluster.StartWorker({.name = "dc2", .step_ms = 5});
  const auto leaver = cluster.StartWorker({.name = "dc3", .step_ms = kSlowStepMs});
  cluster.WaitFor("dc1 and dc2 wait for dc3", [](const v1::Status& s) {
    return s.contributed() == 2 && s.assigned() == 3 && IsTraining(s, "dc3");
  });
  const Instant told = MonotonicClock()->Now();
  leaver->Signal(SIGTERM);
  EXPECT_EQ(ExitCode(leaver.get()), 0) << leaver->Log();
  EXPECT_LT(Since(told), kLeaveLimit);
  EXPECT_EQ(ExitCode(first.get()), 0) << first->Log();
  EXPECT_EQ(ExitCode(second.get()), 0) << second->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();

  const std::vector<std::string> closes = cluster.ServerLines(" reason=others_gone ");
  ASSERT_EQ(closes.size(), 1u) << cluster.server().Log();  // at once, without a grace
  EXPECT_EQ(LogValue(closes[0], "round"), "0");
  ASSERT_EQ(cluster.ServerLines(" round_committed ").size(), 3u);
  const std::vector<std::string> goodbyes = cluster.ServerLines(" reason=goodbye ");
  ASSERT_FALSE(goodbyes.empty());
  EXPECT_EQ(LogValue(goodbyes[0], "worker"), "dc3");
}

TEST(MembershipTest, SigtermWhileWaitingLeavesAtOnce) {
  Cluster cluster;
  cluster.StartServer(SmallRun(8, 4, 2));
  const auto alone = cluster.StartWorker({.name = "dc1"});
  cluster.WaitFor("dc1 ready", [](const v1::Status& s) { return FindWorker(s, "dc1").state() == "waiting"; });
  const Instant told = MonotonicClock()->Now();
  alone->Signal(SIGTERM);
  EXPECT_EQ(ExitCode(alone.get()), 0) << alone->Log();
  EXPECT_LT(Since(told), kLeaveLimit);

  const v1::Status status =
      cluster.WaitFor("dc1 left", [](const v1::Status& s) { return FindWorker(s, "dc1").state() == "left"; });
  EXPECT_EQ(status.alive(), 0u);
  EXPECT_THAT(FindWorker(status, "dc1").reason(), HasSubstr("goodbye"));
}

TEST(MembershipTest, ASecondProcessOfOneNameFencesTheFirst) {
  Cluster cluster;
  cluster.StartServer(SmallRun(8, 4, 1));
  const auto first = cluster.StartWorker({.name = "dc1", .step_ms = kSlowStepMs});
  const v1::Status before =
      cluster.WaitFor("dc1 in its interval", [](const v1::Status& s) { return IsTraining(s, "dc1"); });
  const auto second = cluster.StartWorker({.name = "dc1"});
  EXPECT_EQ(ExitCode(first.get()), 2) << first->Log();
  EXPECT_THAT(first->Log(), HasSubstr("incarnation replaced"));
  EXPECT_EQ(ExitCode(second.get()), 0) << second->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_EQ(cluster.ServerLines(" round_committed ").size(), 2u);
  EXPECT_EQ(FindWorker(before, "dc1").incarnation(), 1u);
}

TEST(MembershipTest, ARoundThatLostEverybodyIsOpenedAgain) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(8, 4, 2), Concat(WithMetrics(), {"--lease-seconds", "2"})));
  std::vector<std::unique_ptr<Process>> lost;
  for (const char* name : {"dc1", "dc2"}) {
    lost.push_back(cluster.StartWorker({.name = name, .step_ms = kSlowStepMs}));
  }
  cluster.WaitFor("both in their intervals",
                  [](const v1::Status& s) { return IsTraining(s, "dc1") && IsTraining(s, "dc2"); });
  for (const auto& worker : lost) worker->Signal(SIGKILL);
  const v1::Status aborted =
      cluster.WaitFor("the round aborted", [](const v1::Status& s) { return s.rounds_aborted() == 1; });
  EXPECT_EQ(aborted.version(), 0u);
  EXPECT_EQ(aborted.alive(), 0u);
  EXPECT_EQ(FindWorker(aborted, "dc1").state(), "left");
  EXPECT_THAT(FindWorker(aborted, "dc1").reason(), HasSubstr("lease_expired"));
  EXPECT_EQ(MetricValue(ScrapeMetrics(cluster.metrics()), "autoloco_rounds_total{outcome=\"aborted\"}"), 1);

  const auto third = cluster.StartWorker({.name = "dc3"});
  const auto fourth = cluster.StartWorker({.name = "dc4"});
  EXPECT_EQ(ExitCode(third.get()), 0) << third->Log();
  EXPECT_EQ(ExitCode(fourth.get()), 0) << fourth->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_EQ(NewestCheckpoint(cluster.state_dir()).inner_step, 8u);
}

}  // namespace
}  // namespace autoloco::test
