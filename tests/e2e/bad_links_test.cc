// Workers behind a bad link (tests/support/relay.h): lost acknowledgements, slow and idle connections, blips. The run
// goes on, and nothing counts twice or is lost. Scaled down; in full length under the ctest label `long`.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/ctl/admin_client.h"
#include "tests/e2e/cluster.h"
#include "tests/support/relay.h"

namespace autoloco::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// On the wire a quantized delta of the nano model is about 21 KB, all of its parameters are about 400 KB.
constexpr std::uint64_t kMostOfADelta = 15'000;
constexpr std::uint64_t kHalfOfAPull = 200'000;
constexpr double kSlack = 3;  // on a loaded machine

std::unique_ptr<Relay> RelayTo(const Cluster& cluster) { return Relay::Start(cluster.address()).value(); }

// An outage or a silence that lasts by the clock: what the test is about, no waiting for something to happen.
void Last(absl::Duration duration) { absl::SleepFor(duration); }

// ------------------------------------------------------------------------------------------- lost acknowledgement

struct StrictRun {
  std::string digest;
  double accepted = 0;
  std::uint64_t cuts = 0;
  std::string log;  // of the worker behind the relay
};

StrictRun RunBehindRelay(bool lose_answer) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(12, 4, 2), Concat(WithMetrics(), {"--strict", "--no-exit-when-done"})));
  const auto relay = RelayTo(cluster);
  if (lose_answer) relay->LoseAnswerAfter(kMostOfADelta);
  const auto first = cluster.StartWorker({.name = "dc1", .server = relay->address()});
  const auto second = cluster.StartWorker({.name = "dc2"});
  EXPECT_EQ(ExitCode(first.get()), 0) << first->Log();
  EXPECT_EQ(ExitCode(second.get()), 0) << second->Log();
  const v1::Status status =
      cluster.WaitFor("the run done", [](const v1::Status& s) { return s.phase() == v1::Status::PHASE_DONE; });
  StrictRun run;
  run.digest = status.params_digest();
  constexpr char kAccepted[] = "autoloco_pushes_total{outcome=\"accepted\"}";
  run.accepted = MetricValue(ScrapeMetricsUntil(cluster.metrics(), kAccepted, 6), kAccepted);
  run.cuts = relay->counts().cut;
  run.log = first->Log();
  return run;
}

TEST(LostAcknowledgementTest, TheDeltaCountsOnceAndTheModelIsTheSame) {
  const StrictRun undisturbed = RunBehindRelay(false);
  EXPECT_EQ(undisturbed.cuts, 0u);
  EXPECT_EQ(undisturbed.accepted, 6);
  const StrictRun disturbed = RunBehindRelay(true);
  EXPECT_EQ(disturbed.cuts, 1u);
  EXPECT_THAT(disturbed.log, HasSubstr(" push_failed "));
  EXPECT_EQ(disturbed.accepted, 6);
  EXPECT_EQ(disturbed.digest, undisturbed.digest);
}

// ------------------------------------------------------------------------------------------- bulk beside control

// Status calls over a connection of their own, through the relay, until told to stop.
class Prober {
 public:
  explicit Prober(const std::string& address)
      : client_(server::AdminClient::Open(address, /*insecure=*/false).value()), thread_([this] { Run(); }) {}
  ~Prober() { Stop(); }

  // Seconds of every call.
  std::vector<double> Stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    return seconds_;
  }

 private:
  void Run() {
    while (!stopping_) {
      const Instant begin = MonotonicClock()->Now();
      if (!client_.GetStatus(absl::Seconds(30)).ok()) continue;
      seconds_.push_back(absl::ToDoubleSeconds(MonotonicClock()->Now() - begin));
      Last(absl::Milliseconds(50));
    }
  }

  const server::AdminClient client_;
  std::atomic<bool> stopping_ = false;
  std::vector<double> seconds_;
  std::thread thread_;
};

TEST(SlowLinkTest, BulkBytesDoNotDelayHeartbeats) {
  // A transfer takes 3 s; in full length 50 s, as 50 MB at 1 MB/s.
  const Arguments model = FullCases() ? Arguments{"--preset=custom", "--width=512", "--heads=8",
                                                  "--kv-heads=8",    "--layers=4",  "--mlp-hidden=1408"}
                                      : Arguments{"--preset=nano"};
  const double rate = FullCases() ? 1e6 : 1.3e5;
  Cluster cluster;
  cluster.StartServer(
      Concat(model, {"--batch-size=2", "--evaluation.windows=0", "--warmup-steps=1", "--total-inner-steps=1",
                     "--policy=fixed", "--interval.steps=1", "--lease-seconds=5", "--heartbeat-seconds=0.5",
                     "--no-exit-when-done", "--codec.delta=fp32", "--codec.broadcast=fp32"}));  // many bytes
  const auto relay = RelayTo(cluster);
  relay->SetDelay(absl::Milliseconds(80));
  relay->SetRate(Direction::kToServer, rate);
  relay->SetRate(Direction::kToClient, rate);
  Prober prober(relay->address());
  const auto worker = cluster.StartWorker({.name = "dc1", .server = relay->address()});
  EXPECT_EQ(ExitCode(worker.get(), absl::Minutes(10)), 0) << worker->Log();
  std::vector<double> seconds = prober.Stop();
  ASSERT_GE(seconds.size(), 20u);
  std::sort(seconds.begin(), seconds.end());
  EXPECT_GE(seconds.front(), 0.16);  // the relay was on the way
  EXPECT_LT(seconds[seconds.size() * 99 / 100], kSlack * 1.0);
  EXPECT_THAT(cluster.ServerLines(" reason=lease_expired "), IsEmpty());
  EXPECT_THAT(cluster.ServerLines(" reason=session_broken "), IsEmpty());
  EXPECT_THAT(worker->Log(), HasSubstr("reason=accepted"));
}

// No time-out knows the model's size: what suits a small one suits one that takes many leases to send.
TEST(SlowLinkTest, TheSameSettingsServeASmallAndALargeModel) {
  const Arguments large = FullCases() ? Arguments{"--preset=custom", "--width=1024", "--layers=10",
                                                  "--heads=8",       "--kv-heads=8", "--mlp-hidden=2816"}  // 500 MB
                                      : Arguments{"--preset=tiny"};                                        // 3 MB
  for (const Arguments& model : {Arguments{"--preset=nano"}, large}) {
    Cluster cluster;
    cluster.StartServer(
        Concat(model, {"--batch-size=2", "--evaluation.windows=0", "--warmup-steps=1", "--total-inner-steps=1",
                       "--policy=fixed", "--interval.steps=1", "--lease-seconds=2", "--heartbeat-seconds=0.2",
                       "--codec.delta=fp32", "--codec.broadcast=fp32"}));  // many bytes
    const auto relay = RelayTo(cluster);
    relay->SetRate(Direction::kToServer, FullCases() ? 2e6 : 1e6);
    relay->SetRate(Direction::kToClient, FullCases() ? 2e6 : 1e6);
    const auto worker = cluster.StartWorker({.name = "dc1", .server = relay->address()});
    EXPECT_EQ(ExitCode(worker.get(), absl::Minutes(20)), 0) << worker->Log();
    EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
    EXPECT_THAT(cluster.ServerLines(" reason=lease_expired "), IsEmpty());
    EXPECT_THAT(cluster.ServerLines(" round_committed "), SizeIs(1));
  }
}

// ------------------------------------------------------------------------------------------- silences

TEST(BlipTest, AWorkerCutOffBeyondItsLeaseComesBackByItself) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(4000, 4, 1), {"--lease-seconds", "2", "--start-workers", "2"}));
  const auto relay = RelayTo(cluster);
  const auto steady = cluster.StartWorker({.name = "dc1", .step_ms = 50});
  const auto cut_off = cluster.StartWorker({.name = "dc2", .step_ms = 50, .server = relay->address()});
  const v1::Status before = cluster.WaitFor("both contribute", [](const v1::Status& s) { return s.applied() == 2; });
  relay->Block();
  const v1::Status gone = cluster.WaitFor(
      "dc2 given up", [](const v1::Status& s) { return FindWorker(s, "dc2").state() == "left" && s.applied() == 1; });
  EXPECT_THAT(FindWorker(gone, "dc2").reason(), HasSubstr("lease_expired"));
  if (FullCases()) Last(absl::Seconds(5));
  relay->Unblock();
  const v1::Status back = cluster.WaitFor("dc2 contributes again", [](const v1::Status& s) {
    return s.applied() == 2 && FindWorker(s, "dc2").state() != "left";
  });
  EXPECT_GT(back.version(), gone.version());
  EXPECT_GT(back.worker_inner_steps(), gone.worker_inner_steps());
  EXPECT_GT(FindWorker(back, "dc2").incarnation(), FindWorker(before, "dc2").incarnation());
  EXPECT_EQ(cut_off->Wait(absl::ZeroDuration()).status().code(), absl::StatusCode::kDeadlineExceeded);  // still runs
}

TEST(IdleLinkTest, ALongIntervalBehindAMiddleboxThatCutsIdleConnections) {
  const absl::Duration idle_limit = FullCases() ? absl::Seconds(20) : absl::Seconds(1);
  const int step_ms = FullCases() ? 15000 : 750;  // four of them
  Cluster cluster;
  cluster.StartServer(SmallRun(8, 4, 1));
  const auto relay = RelayTo(cluster);
  relay->SetIdleCut(idle_limit);
  const auto worker = cluster.StartWorker({.name = "dc1", .step_ms = step_ms, .server = relay->address()});
  EXPECT_EQ(ExitCode(worker.get(), absl::Minutes(5)), 0) << worker->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_EQ(cluster.ServerLines(" round_committed ").size(), 2u);
  EXPECT_THAT(worker->Log(), Not(HasSubstr("disconnected")));  // the session is never idle
  // In full length the keepalive holds them all.
  EXPECT_GE(relay->counts().cut, FullCases() ? 0u : 1u);
}

TEST(KeepaliveTest, FrequentPingsEarnNoGoaway) {
  const absl::Duration silence = FullCases() ? absl::Seconds(60) : absl::Seconds(4);
  const int step_ms = FullCases() ? 15000 : 1000;  // four of them
  Cluster cluster;
  Arguments flags = Concat(SmallRun(4, 4, 2), {"--lease-seconds", "300"});
  // Heartbeats are data; what counts are pings without any.
  std::replace(flags.begin(), flags.end(), std::string("--heartbeat-seconds=0.2"),
               std::string("--heartbeat-seconds=100"));
  cluster.StartServer(flags);
  const auto relay = RelayTo(cluster);
  const Arguments pings = {"--keepalive-seconds", "1"};
  const auto first =
      cluster.StartWorker({.name = "dc1", .step_ms = step_ms, .flags = pings, .server = relay->address()});
  cluster.WaitFor("dc1 ready", [](const v1::Status& s) { return FindWorker(s, "dc1").state() == "waiting"; });
  const RelayCounts idle = relay->counts();
  Last(silence);  // idle, then silent beside a long interval
  EXPECT_EQ(relay->counts().opened, idle.opened);
  EXPECT_GT(relay->counts().carried[0], idle.carried[0]);  // pings
  const auto second = cluster.StartWorker({.name = "dc2"});
  EXPECT_EQ(ExitCode(first.get(), absl::Minutes(5)), 0) << first->Log();
  EXPECT_EQ(ExitCode(second.get()), 0) << second->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_EQ(relay->counts().cut, 0u);
  EXPECT_THAT(first->Log(), Not(HasSubstr("disconnected")));
  EXPECT_THAT(cluster.ServerLines(" reason=session_broken "), IsEmpty());
  EXPECT_LE(relay->counts().opened, idle.opened + 2);  // a push, and a pull after it
}

// ------------------------------------------------------------------------------------------- pulls

TEST(SlowJoinerTest, JoinsAGroupThatIsFasterThanItsDownload) {
  const double rate = FullCases() ? 40e3 : 200e3;  // the model takes 10 s; 2 s
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(4000, 4, 1), {"--start-workers", "2"}));
  const auto first = cluster.StartWorker({.name = "dc1", .step_ms = 200});
  const auto second = cluster.StartWorker({.name = "dc2", .step_ms = 200});
  cluster.WaitForVersion(1);
  const auto relay = RelayTo(cluster);
  relay->SetRate(Direction::kToClient, rate);
  const auto joiner = cluster.StartWorker({.name = "dc3", .step_ms = 200, .server = relay->address()});
  const v1::Status joined =
      cluster.WaitFor("dc3's delta applied", [](const v1::Status& s) { return s.applied() == 3; });
  EXPECT_GT(joined.version(), 1u);
  // All of the model once, read while rounds committed, and the broadcasts since, of 22 kB each.
  EXPECT_LT(relay->counts().carried[1], 5 * kHalfOfAPull / 2 + joined.version() * 25000) << joiner->Log();
  EXPECT_THAT(LinesOf(joiner.get(), "\"live, "), SizeIs(1)) << joiner->Log();
  EXPECT_THAT(LinesOf(joiner.get(), "\"broadcast, digest "), Not(IsEmpty())) << joiner->Log();
  EXPECT_THAT(LinesOf(joiner.get(), " pull_failed "), IsEmpty());
}

TEST(CutPullTest, AServerKilledInTheMiddleOfAPull) {
  const auto run = [](bool disturbed) {
    Cluster cluster;
    const Arguments flags = Concat(SmallRun(8, 4, 1), {"--strict"});
    cluster.StartServer(flags);
    const auto relay = RelayTo(cluster);
    if (disturbed) relay->CutAfter(Direction::kToClient, kHalfOfAPull);
    const auto worker = cluster.StartWorker({.name = "dc1", .server = relay->address()});
    if (disturbed) {
      EXPECT_TRUE(relay->WaitForCuts(1, kPatience));
      cluster.server().Signal(SIGKILL);
      EXPECT_EQ(ExitCode(&cluster.server()), 128 + SIGKILL);
      EXPECT_THAT(LinesOf(worker.get(), " assigned "), IsEmpty());  // nothing trains on half a model
      cluster.StartServer(flags);
    }
    EXPECT_EQ(ExitCode(worker.get()), 0) << worker->Log();
    EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
    const std::vector<std::string> pulled = LinesOf(worker.get(), ", digest ");
    EXPECT_THAT(pulled.empty() ? worker->Log() : pulled[0], HasSubstr(LogValue(cluster.serving(), "view_digest")));
    return NewestCheckpoint(cluster.state_dir()).digest;
  };
  EXPECT_EQ(run(true), run(false));
}

}  // namespace
}  // namespace autoloco::test
