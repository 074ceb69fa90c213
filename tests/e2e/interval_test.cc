// The interval policy in real processes: every decision shows, and all of them are those of the pure policy replayed
// from the run's history.
#include <signal.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/config/load.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/interval_policy.h"
#include "server/rpc/settings.h"
#include "server/storage/checkpoint_manifest.h"
#include "tests/e2e/cluster.h"

namespace autoloco::test {
namespace {

using ::testing::HasSubstr;

constexpr int kTotalSteps = 160;

Arguments AutolocoRun() {
  return Concat(SmallRun(kTotalSteps, 6, 2),
                {"--policy", "autoloco", "--inner.learning-rate", "0.02", "--calibration-rounds", "3"});
}

server::IntervalConfig PolicyOf(const Arguments& flags) {
  v1::ServerConfig config;
  const Outcome outcome = LoadServerConfig(Concat(flags, {"--state-dir", "unused"}), {}, &config);
  EXPECT_FALSE(outcome.exits) << outcome.err;
  return server::ToIntervalConfig(config.run());
}

// What the newest checkpoint remembers.
server::CoreSnapshot Remembered(const Cluster& cluster) {
  const std::string path = absl::StrCat(NewestCheckpoint(cluster.state_dir()).path, "/manifest.json");
  return server::ReadManifest(path).value().snapshot;
}

void ExpectReplays(const server::IntervalConfig& config, const server::CoreSnapshot& snapshot) {
  const std::vector<server::RoundRecord>& history = snapshot.history;
  ASSERT_EQ(history.size(), snapshot.version);
  const std::vector<server::IntervalDecision> decisions = server::ReplayDecisions(config, history);
  server::IntervalState state;
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < history.size(); ++i) {
    EXPECT_EQ(history[i].round, i);
    EXPECT_EQ(history[i].first_inner_step, done);
    EXPECT_EQ(history[i].inner_steps, decisions[i].steps) << i;
    EXPECT_EQ(history[i].interval, decisions[i].interval) << i;
    EXPECT_EQ(history[i].reason, decisions[i].reason) << i;
    EXPECT_EQ(history[i].momentum_scale, decisions[i].momentum_scale) << i;
    done += history[i].inner_steps;
    server::ObserveRound(config, history[i], &state);
  }
  EXPECT_EQ(state, snapshot.interval);
  EXPECT_EQ(done, snapshot.inner_steps_done);
}

TEST(IntervalTest, EveryDecisionShowsAndReplays) {
  Cluster cluster;
  const Arguments flags = AutolocoRun();
  cluster.StartServer(Concat(Concat(flags, WithMetrics()), {"--exit-when-done", "false"}));
  const auto first = cluster.StartWorker({.name = "dc1"});
  const auto second = cluster.StartWorker({.name = "dc2"});
  const v1::Status status =
      cluster.WaitFor("the end", [](const v1::Status& s) { return s.phase() == v1::Status::PHASE_DONE; });
  EXPECT_THAT(status.interval_reason(), HasSubstr("last_interval: reference 6"));

  const server::CoreSnapshot snapshot = Remembered(cluster);
  ExpectReplays(PolicyOf(flags), snapshot);
  EXPECT_EQ(snapshot.inner_steps_done, kTotalSteps);
  EXPECT_LT(snapshot.version, kTotalSteps / 6u);  // the interval has grown
  EXPECT_EQ(snapshot.history.front().reason, server::Reason::kWarmup);
  EXPECT_EQ(snapshot.history.back().reason, server::Reason::kLastInterval);
  EXPECT_TRUE(snapshot.history.back().final_average);
  for (const server::RoundRecord& record : snapshot.history) {
    EXPECT_EQ(record.contributors, 2u);
    EXPECT_GT(record.learning_rate_sum, 0);
    EXPECT_TRUE(record.statistics.agreement.has_value());
    EXPECT_TRUE(record.loss_first.has_value());
  }

  const Ended rounds = RunProgram(kOperator, {"rounds", "--csv", "--server", cluster.address()});
  EXPECT_EQ(rounds.exit_code, 0) << rounds.log;
  const std::vector<std::string> lines = absl::StrSplit(rounds.output, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), snapshot.version + 1);
  for (std::size_t i = 0; i < snapshot.history.size(); ++i) {
    const std::vector<std::string> cells = absl::StrSplit(lines[i + 1], ',');
    EXPECT_EQ(cells[0], absl::StrCat(i));
    EXPECT_EQ(cells[2], absl::StrCat(snapshot.history[i].inner_steps));
    EXPECT_EQ(cells[4], ReasonName(snapshot.history[i].reason));
  }

  const std::string metrics = ScrapeMetrics(cluster.metrics());
  const server::RoundRecord& last = snapshot.history.back();
  EXPECT_NEAR(MetricValue(metrics, "autoloco_outer_r"), last.ratio, 1e-9);
  EXPECT_NEAR(MetricValue(metrics, "autoloco_agreement"), *last.statistics.agreement, 1e-9);
  EXPECT_NEAR(MetricValue(metrics, "autoloco_noise_steps"), *last.statistics.noise_steps, 1e-6);
  EXPECT_EQ(MetricValue(metrics, "autoloco_decisions_total{kind=\"interval\",reason=\"calibration\"}"), 3);
  EXPECT_EQ(MetricValue(metrics, "autoloco_decisions_total{kind=\"interval\",reason=\"last_interval\"}"), 1);
  EXPECT_THAT(cluster.ServerLines(" interval "), ::testing::SizeIs(snapshot.version));
  cluster.server().Signal(SIGTERM);
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
}

TEST(IntervalTest, AKilledServerGoesOnWithTheSameHistory) {
  Cluster cluster;
  const Arguments flags = Concat(AutolocoRun(), {"--checkpoint-every-rounds", "1"});
  cluster.StartServer(flags);
  const auto first = cluster.StartWorker({.name = "dc1", .step_ms = 20});
  const auto second = cluster.StartWorker({.name = "dc2", .step_ms = 20});
  cluster.WaitFor("version 7 stored",
                  [](const v1::Status& s) { return s.version() >= 7 && IsTraining(s, "dc1"); });
  cluster.server().Signal(SIGKILL);
  EXPECT_EQ(ExitCode(&cluster.server()), 128 + SIGKILL);
  const server::CoreSnapshot before = Remembered(cluster);
  EXPECT_GE(before.version, 6u);
  ExpectReplays(PolicyOf(flags), before);

  cluster.StartServer(flags);
  EXPECT_EQ(ExitCode(first.get()), 0) << first->Log();
  EXPECT_EQ(ExitCode(second.get()), 0) << second->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  const server::CoreSnapshot after = Remembered(cluster);
  ExpectReplays(PolicyOf(flags), after);
  EXPECT_EQ(after.inner_steps_done, kTotalSteps);
  ASSERT_GE(after.history.size(), before.history.size());
  for (std::size_t i = 0; i < before.history.size(); ++i) EXPECT_EQ(after.history[i], before.history[i]) << i;
}

}  // namespace
}  // namespace autoloco::test
