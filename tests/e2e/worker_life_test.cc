// Workers that are told to go, killed and started again: what they trained counts, and what they do afterwards is what
// they would have done.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/cluster.h"
#include "tests/support/relay.h"

namespace autoloco::test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr absl::Duration kLeaveLimit = absl::Seconds(10);  // a worker that was told to leave
constexpr absl::Duration kAtOnce = absl::Seconds(3);       // with slack for a loaded machine
// A lossless delta or all parameters of the nano model are several hundred KB: they take most of a minute.
constexpr double kTrickle = 1e4;
constexpr absl::Duration kBackLimit = absl::Seconds(15);  // from the server's return to the worker's
constexpr int kSlack = 3;                                 // on a loaded machine
constexpr int kEndlessStepMs = 60'000;

absl::Duration Since(Instant begin) { return MonotonicClock()->Now() - begin; }

std::vector<std::string> Lines(Process* process, absl::string_view text) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(process->Log(), '\n')) {
    if (absl::StrContains(line, text)) lines.emplace_back(line);
  }
  return lines;
}

std::uint64_t Number(const std::string& line, const char* key) {
  std::uint64_t number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(LogValue(line, key), &number)) << key << " in " << line;
  return number;
}

// Tells the worker to leave and waits until it has.
void ExpectLeaves(Process* worker) {
  const Instant told = MonotonicClock()->Now();
  worker->Signal(SIGTERM);
  EXPECT_EQ(ExitCode(worker), 0) << worker->Log();
  EXPECT_LT(Since(told), kLeaveLimit);
}

v1::Status WaitForPhase(const Cluster& cluster, const std::string& worker, const std::string& state) {
  return cluster.WaitFor(absl::StrCat(worker, " ", state),
                         [&](const v1::Status& s) { return FindWorker(s, worker).state() == state; });
}

// ---------------------------------------------------------------------------------------------------- SIGTERM

TEST(SigtermTest, InTheIntervalSendsWhatThereIs) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(60, 20, 2), {"--start-workers", "3"}));
  const auto first = cluster.StartWorker({.name = "dc1", .step_ms = 150});
  const auto second = cluster.StartWorker({.name = "dc2", .step_ms = 150});
  const auto leaver = cluster.StartWorker({.name = "dc3", .step_ms = 200});
  cluster.WaitFor("dc3 has done two steps",
                  [](const v1::Status& s) { return IsTraining(s, "dc3") && FindWorker(s, "dc3").steps_done() >= 2; });
  ExpectLeaves(leaver.get());
  const std::vector<std::string> trained = Lines(leaver.get(), " interval_trained ");
  ASSERT_THAT(trained, SizeIs(1)) << leaver->Log();
  EXPECT_GE(Number(trained[0], "steps"), 2u);
  EXPECT_LT(Number(trained[0], "steps"), 20u);
  EXPECT_THAT(Lines(leaver.get(), " push_answered "), SizeIs(1)) << leaver->Log();

  EXPECT_EQ(ExitCode(first.get()), 0) << first->Log();
  EXPECT_EQ(ExitCode(second.get()), 0) << second->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  const std::vector<std::string> commits = cluster.ServerLines(" round_committed ");
  ASSERT_THAT(commits, SizeIs(3));
  EXPECT_EQ(LogValue(commits[0], "applied"), "3") << cluster.server().Log();
  for (const std::size_t round : {1, 2}) {  // nobody counted on it any more
    EXPECT_EQ(LogValue(commits[round], "expected"), "2") << commits[round];
    EXPECT_EQ(LogValue(commits[round], "applied"), "2") << commits[round];
  }
}

TEST(SigtermTest, BeforeATwentiethOfTheIntervalOnlySaysGoodbye) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(100, 50, 2), {"--start-workers", "3"}));
  const auto first = cluster.StartWorker({.name = "dc1", .step_ms = 5});
  const auto second = cluster.StartWorker({.name = "dc2", .step_ms = 5});
  const auto leaver = cluster.StartWorker({.name = "dc3", .step_ms = 3000});
  cluster.WaitFor("dc3 alone at work",
                  [](const v1::Status& s) { return s.contributed() == 2 && IsTraining(s, "dc3"); });
  ExpectLeaves(leaver.get());
  EXPECT_THAT(Lines(leaver.get(), " interval_trained "), IsEmpty());
  EXPECT_EQ(ExitCode(first.get()), 0) << first->Log();
  EXPECT_EQ(ExitCode(second.get()), 0) << second->Log();
  const std::vector<std::string> commits = cluster.ServerLines(" round_committed ");
  ASSERT_THAT(commits, SizeIs(2));
  EXPECT_EQ(LogValue(commits[0], "applied"), "2");
}

TEST(SigtermTest, InThePushIsGoneWithinTheGrace) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(12, 4, 1), {"--start-workers", "2", "--codec.delta", "fp32"}));
  const auto relay = Relay::Start(cluster.address()).value();
  const auto peer = cluster.StartWorker({.name = "dc1", .step_ms = 20});
  const auto leaver = cluster.StartWorker({.name = "dc2", .step_ms = 20, .server = relay->address()});
  cluster.WaitFor("dc2 in its interval", [](const v1::Status& s) { return IsTraining(s, "dc2"); });
  relay->SetRate(Direction::kToServer, kTrickle);
  ASSERT_TRUE(leaver->WaitForLog(" interval_trained ", kPatience).ok()) << leaver->Log();
  ExpectLeaves(leaver.get());
  EXPECT_EQ(ExitCode(peer.get()), 0) << peer->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_THAT(cluster.ServerLines(" round_committed "), SizeIs(3));
}

TEST(SigtermTest, InThePullIsGoneWithinTheGrace) {
  Cluster cluster;
  cluster.StartServer(SmallRun(4, 4, 2));
  const auto relay = Relay::Start(cluster.address()).value();
  relay->SetRate(Direction::kToClient, kTrickle);
  const auto leaver = cluster.StartWorker({.name = "dc1", .server = relay->address()});
  ASSERT_TRUE(leaver->WaitForLog(" prepared ", kPatience).ok()) << leaver->Log();
  ExpectLeaves(leaver.get());
  EXPECT_THAT(Lines(leaver.get(), " pulled "), IsEmpty());
}

TEST(SigtermTest, WhileTheServerIsAwayIsGoneWithinTheGrace) {
  Cluster cluster;
  cluster.StartServer(SmallRun(12, 4, 1));
  const auto waiting = cluster.StartWorker({.name = "dc1", .step_ms = 500});
  cluster.WaitFor("dc1 in its interval", [](const v1::Status& s) { return IsTraining(s, "dc1"); });
  cluster.server().Signal(SIGKILL);
  ASSERT_TRUE(waiting->WaitForLog(" interval_trained ", kPatience).ok()) << waiting->Log();
  ASSERT_TRUE(waiting->WaitForLog(" push_failed ", kPatience).ok()) << waiting->Log();
  ExpectLeaves(waiting.get());

  const auto never_joined = cluster.StartWorker({.name = "dc2"});
  ASSERT_TRUE(never_joined->WaitForLog(" disconnected ", kPatience).ok()) << never_joined->Log();
  ExpectLeaves(never_joined.get());
}

TEST(SigtermTest, ASecondOneExitsAtOnce) {
  Cluster cluster;
  cluster.StartServer(SmallRun(12, 4, 1));
  const auto busy = cluster.StartWorker({.name = "dc1", .step_ms = kEndlessStepMs});
  cluster.WaitFor("dc1 in its interval", [](const v1::Status& s) { return IsTraining(s, "dc1"); });
  busy->Signal(SIGTERM);
  ASSERT_TRUE(busy->WaitForLog(" leaving ", kPatience).ok()) << busy->Log();
  // The same signal again within a second is the same request (common/base/shutdown.h).
  absl::SleepFor(absl::Milliseconds(1100));
  const Instant told = MonotonicClock()->Now();
  busy->Signal(SIGTERM);
  EXPECT_EQ(ExitCode(busy.get()), 128 + SIGTERM) << busy->Log();
  EXPECT_LT(Since(told), kAtOnce);
}

TEST(SigtermTest, AStepLongerThanTheGraceIsLeftBehind) {
  Cluster cluster;
  cluster.StartServer(SmallRun(12, 4, 1));
  const auto busy = cluster.StartWorker({.name = "dc1", .step_ms = kEndlessStepMs, .flags = {"--leave-seconds", "1"}});
  cluster.WaitFor("dc1 in its interval", [](const v1::Status& s) { return IsTraining(s, "dc1"); });
  ExpectLeaves(busy.get());
  const v1::Status left = WaitForPhase(cluster, "dc1", "left");
  EXPECT_THAT(FindWorker(left, "dc1").reason(), HasSubstr("goodbye"));
}

// ---------------------------------------------------------------------------------------------------- kill -9

struct Trained {
  std::uint64_t first_sample, end_sample;
  std::string first_rate, last_rate;
  bool operator<(const Trained& other) const { return first_sample < other.first_sample; }
};

// By round; an interval that was trained twice fails the test.
void AddTrained(Process* worker, std::map<std::uint64_t, Trained>* rounds) {
  for (const std::string& line : Lines(worker, " interval_trained ")) {
    const bool added = rounds
                           ->insert({Number(line, "round"),
                                     {Number(line, "first_sample"), Number(line, "end_sample"),
                                      LogValue(line, "first_learning_rate"), LogValue(line, "last_learning_rate")}})
                           .second;
    EXPECT_TRUE(added) << line;
  }
}

enum class Disturbance { kNone, kKilledWithState, kKilledWithoutState };

// Six rounds of two workers in strict mode; one is killed in its fourth interval, after three pushes, and started
// again.
std::string DigestOfRun(Disturbance disturbance) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(24, 4, 2), {"--strict"}));
  const Arguments state = disturbance == Disturbance::kKilledWithoutState
                              ? Arguments{}
                              : Arguments{"--state-dir", cluster.folder() + "/dc2"};
  const auto peer = cluster.StartWorker({.name = "dc1", .step_ms = 5});
  auto victim = cluster.StartWorker({.name = "dc2", .step_ms = 100, .flags = state});
  std::map<std::uint64_t, Trained> of_peer, of_victim;
  if (disturbance != Disturbance::kNone) {
    cluster.WaitFor("dc2 in its fourth interval",
                    [](const v1::Status& s) { return s.version() == 3 && IsTraining(s, "dc2"); });
    victim->Signal(SIGKILL);
    EXPECT_EQ(ExitCode(victim.get()), 128 + SIGKILL);
    AddTrained(victim.get(), &of_victim);
    EXPECT_THAT(of_victim, SizeIs(3));
    victim = cluster.StartWorker({.name = "dc2", .flags = state});
  }
  EXPECT_EQ(ExitCode(peer.get()), 0) << peer->Log();
  EXPECT_EQ(ExitCode(victim.get()), 0) << victim->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  AddTrained(peer.get(), &of_peer);
  AddTrained(victim.get(), &of_victim);
  EXPECT_THAT(of_peer, SizeIs(6));
  EXPECT_THAT(of_victim, SizeIs(6));
  // No sample is missing, none comes twice, and equal steps have equal learning rates.
  std::vector<Trained> all;
  for (const auto& [round, trained] : of_victim) {
    all.push_back(trained);
    all.push_back(of_peer[round]);
    EXPECT_EQ(trained.first_rate, of_peer[round].first_rate) << "round " << round;
    EXPECT_EQ(trained.last_rate, of_peer[round].last_rate) << "round " << round;
  }
  std::sort(all.begin(), all.end());
  std::uint64_t next = 0;
  for (const Trained& trained : all) {
    EXPECT_EQ(trained.first_sample, next);
    next = trained.end_sample;
  }
  EXPECT_EQ(next, 24u * 2 * 2);
  return NewestCheckpoint(cluster.state_dir()).digest;
}

TEST(KilledWorkerTest, GoesOnWithItsSamplesItsLearningRateAndItsOptimizer) {
  const std::string undisturbed = DigestOfRun(Disturbance::kNone);
  EXPECT_EQ(DigestOfRun(Disturbance::kKilledWithState), undisturbed);
  EXPECT_NE(DigestOfRun(Disturbance::kKilledWithoutState), undisturbed);  // the optimizer started from nothing
}

TEST(KilledWorkerTest, SendsItsSavedDeltaUnderItsOwnKey) {
  Cluster cluster;
  cluster.StartServer(
      Concat(SmallRun(8, 4, 1), {"--start-workers", "2", "--disconnect-grace-seconds", "60", "--codec.delta", "fp32"}));
  const auto relay = Relay::Start(cluster.address()).value();
  const Arguments state = {"--state-dir", cluster.folder() + "/dc2"};
  const auto peer = cluster.StartWorker({.name = "dc1", .step_ms = 20});
  auto victim = cluster.StartWorker({.name = "dc2", .step_ms = 20, .flags = state, .server = relay->address()});
  cluster.WaitFor("dc2 in its interval", [](const v1::Status& s) { return IsTraining(s, "dc2"); });
  relay->SetRate(Direction::kToServer, kTrickle);
  ASSERT_TRUE(victim->WaitForLog(" interval_trained ", kPatience).ok()) << victim->Log();
  cluster.WaitFor("dc2 sends its delta", [](const v1::Status& s) {
    return s.contributed() == 1 && FindWorker(s, "dc2").state() == "pushing";
  });
  victim->Signal(SIGKILL);
  EXPECT_EQ(ExitCode(victim.get()), 128 + SIGKILL);

  victim = cluster.StartWorker({.name = "dc2", .flags = state});
  EXPECT_EQ(ExitCode(victim.get()), 0) << victim->Log();
  EXPECT_EQ(ExitCode(peer.get()), 0) << peer->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  const std::vector<std::string> commits = cluster.ServerLines(" round_committed ");
  ASSERT_THAT(commits, SizeIs(2));
  EXPECT_EQ(LogValue(commits[0], "applied"), "2") << cluster.server().Log();
  EXPECT_THAT(Lines(victim.get(), " interval_trained "), Each(Not(HasSubstr(" round=0 ")))) << victim->Log();
}

TEST(KilledWorkerTest, HearsThatItsSavedDeltaCounted) {
  Cluster cluster;
  cluster.StartServer(SmallRun(400, 4, 1));
  const Arguments state = {"--state-dir", cluster.folder() + "/dc2"};
  const auto peer = cluster.StartWorker({.name = "dc1", .step_ms = 50});
  auto victim = cluster.StartWorker({.name = "dc2", .step_ms = 500, .flags = state});
  cluster.WaitFor("dc2 in the interval after a commit of both",
                  [](const v1::Status& s) { return s.applied() == 2 && IsTraining(s, "dc2"); });
  victim->Signal(SIGKILL);
  EXPECT_EQ(ExitCode(victim.get()), 128 + SIGKILL);
  victim = cluster.StartWorker({.name = "dc2", .step_ms = 50, .flags = state});
  const absl::StatusOr<std::string> answered = victim->WaitForLog(" push_answered ", kPatience);
  ASSERT_TRUE(answered.ok()) << victim->Log();
  EXPECT_THAT(*answered, HasSubstr("accepted, as incarnation"));
  ASSERT_TRUE(victim->WaitForLog(" optimizer_state_loaded ", kPatience).ok()) << victim->Log();
  const std::uint64_t version =
      cluster.WaitFor("dc2 back", [](const v1::Status& s) { return FindWorker(s, "dc2").incarnation() >= 3; })
          .version();
  cluster.WaitFor("dc2 contributes again",
                  [version](const v1::Status& s) { return s.version() > version && s.applied() == 2; });
}

TEST(WorkerStateTest, ADamagedStateIsNamedAndIgnored) {
  Cluster cluster;
  cluster.StartServer(SmallRun(8, 4, 1));
  const std::string folder = cluster.folder() + "/dc1";
  ASSERT_EQ(mkdir(folder.c_str(), 0755), 0);
  std::ofstream(folder + "/interval.safetensors") << "this is not what was saved";
  const auto worker = cluster.StartWorker({.name = "dc1", .flags = {"--state-dir", folder}});
  EXPECT_EQ(ExitCode(worker.get()), 0) << worker->Log();
  EXPECT_THAT(worker->Log(), HasSubstr("saved_delta_ignored"));
  EXPECT_THAT(worker->Log(), HasSubstr(folder + "/interval.safetensors"));
}

TEST(WorkerStateTest, OneWorkerAFolder) {
  Cluster cluster;
  cluster.StartServer(SmallRun(400, 4, 1));
  const Arguments state = {"--state-dir", cluster.folder() + "/shared"};
  const auto first = cluster.StartWorker({.name = "dc1", .step_ms = 50, .flags = state});
  cluster.WaitForVersion(1);
  const auto second = cluster.StartWorker({.name = "dc2", .flags = state});
  EXPECT_EQ(ExitCode(second.get()), 2) << second->Log();
  EXPECT_THAT(second->Log(), HasSubstr(absl::StrCat("already in use by pid ", first->pid())));
}

// ---------------------------------------------------------------------------------------------------- pulls

TEST(CutPullTest, StartsAgainByItselfAndNothingHalfLoadedTrains) {
  Cluster cluster;
  const Arguments run = SmallRun(8, 4, 1);
  cluster.StartServer(run);
  const auto relay = Relay::Start(cluster.address()).value();
  relay->SetRate(Direction::kToClient, 1e5);  // a pull takes several seconds
  const auto worker = cluster.StartWorker({.name = "dc1", .server = relay->address()});
  ASSERT_TRUE(worker->WaitForLog(" prepared ", kPatience).ok()) << worker->Log();
  cluster.WaitFor("a part of the pull carried", [&](const v1::Status&) {
    return relay->counts().carried[static_cast<std::size_t>(Direction::kToClient)] > 200'000;
  });
  cluster.server().Signal(SIGKILL);  // in the middle of the pull
  EXPECT_EQ(ExitCode(&cluster.server()), 128 + SIGKILL);
  relay->CutAll();  // what was on its way is lost with the machine
  ASSERT_TRUE(worker->WaitForLog(" pull_failed ", kPatience).ok()) << worker->Log();
  EXPECT_THAT(Lines(worker.get(), " pulled "), IsEmpty());
  relay->SetRate(Direction::kToClient, 0);
  cluster.StartServer(run);
  EXPECT_EQ(ExitCode(worker.get()), 0) << worker->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_THAT(cluster.ServerLines(" round_committed "), SizeIs(2));
}

// ---------------------------------------------------------------------------------------------------- the server

TEST(ServerAbsenceTest, TheInterruptedRoundGoesOnWithAllItsDeltas) {
  Cluster cluster;
  const Arguments run = Concat(SmallRun(60, 20, 2), {"--quorum-share", "1"});
  cluster.StartServer(run);
  const auto first = cluster.StartWorker({.name = "dc1", .step_ms = 10});
  const auto second = cluster.StartWorker({.name = "dc2", .step_ms = 200});
  cluster.WaitFor("dc1 has delivered, dc2 is at work",
                  [](const v1::Status& s) { return s.contributed() == 1 && IsTraining(s, "dc2"); });
  cluster.server().Signal(SIGKILL);
  EXPECT_EQ(ExitCode(&cluster.server()), 128 + SIGKILL);
  absl::SleepFor(absl::Seconds(2));  // the outage
  const Instant back = MonotonicClock()->Now();
  cluster.StartServer(run);
  for (const auto& worker : {first.get(), second.get()}) {
    ASSERT_TRUE(worker->WaitForLog(" reconnected ", kPatience).ok()) << worker->Log();
  }
  EXPECT_LT(Since(back), kSlack * kBackLimit);
  EXPECT_EQ(ExitCode(first.get()), 0) << first->Log();
  EXPECT_EQ(ExitCode(second.get()), 0) << second->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  const std::vector<std::string> commits = cluster.ServerLines(" round_committed ");
  ASSERT_THAT(commits, SizeIs(3));
  for (const std::string& commit : commits) EXPECT_EQ(LogValue(commit, "applied"), "2") << commit;
  for (const auto& worker : {first.get(), second.get()}) {
    std::map<std::uint64_t, Trained> rounds;
    AddTrained(worker, &rounds);  // each interval once
    EXPECT_THAT(rounds, SizeIs(3)) << worker->Log();
  }
}

}  // namespace
}  // namespace autoloco::test
