// What elasticity must not cost: a round without somebody says so, and late work helps instead of spoiling the model.
#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/cluster.h"

namespace autoloco::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

double Number(const std::string& line, absl::string_view key) {
  double value = -1;
  EXPECT_TRUE(absl::SimpleAtod(LogValue(line, key), &value)) << key << " of " << line;
  return value;
}

// One of three is five times slower than its work expects. No round is committed by one worker alone, and every round
// that closes without somebody says without whom.
TEST(MissingWorkerTest, ARoundWithoutSomebodySaysWithoutWhom) {
  Cluster cluster;
  cluster.StartServer(
      Concat(SmallRun(4000, 4, 2), Concat(WithMetrics(), {"--start-workers", "3", "--no-match-speed"})));
  std::vector<std::unique_ptr<Process>> workers;
  for (const char* name : {"dc1", "dc2"}) workers.push_back(cluster.StartWorker({.name = name, .step_ms = 100}));
  workers.push_back(cluster.StartWorker({.name = "slow", .step_ms = 600}));
  cluster.WaitFor("three rounds, the last one without the slow one",
                  [](const v1::Status& s) { return s.version() >= 3 && s.applied() == 2; });
  const std::string metrics = ScrapeMetrics(cluster.metrics());
  EXPECT_LT(MetricValue(metrics, "autoloco_round_participants"), MetricValue(metrics, "autoloco_round_expected"));
  int without = 0;
  const std::vector<std::string> closes = cluster.ServerLines(" close reason=");
  for (const std::string& commit : cluster.ServerLines(" round_committed ")) {
    EXPECT_GE(Number(commit, "applied"), 2) << commit;
    if (Number(commit, "applied") == Number(commit, "expected")) continue;
    ++without;
    bool said = false;
    for (const std::string& close : closes) {
      said = said || (LogValue(close, "round") == LogValue(commit, "round") && absl::StrContains(close, "slow"));
    }
    EXPECT_TRUE(said) << commit << "\n" << cluster.server().Log();
  }
  EXPECT_GE(without, 1);
}

// Held-out loss at the end over that of the start, of two workers of which one is four times slower.
double LossRatio(const Arguments& flags, bool* late_applied) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(80, 4, 2), Concat({"--inner.learning-rate", "0.02", "--no-match-speed"}, flags)));
  const auto fast = cluster.StartWorker({.name = "dc1", .step_ms = 20});
  const auto slow = cluster.StartWorker({.name = "dc2", .step_ms = 80});
  EXPECT_EQ(ExitCode(fast.get()), 0) << fast->Log();
  EXPECT_EQ(ExitCode(slow.get()), 0) << slow->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_THAT(cluster.ServerLines(" round_committed "), SizeIs(20));
  *late_applied = !cluster.ServerLines(" reason=late_applied ").empty();
  const std::vector<std::string> evaluations = cluster.ServerLines(" evaluation ");
  if (evaluations.size() < 2) return 1;
  return Number(evaluations.back(), "loss") / Number(evaluations.front(), "loss");
}

TEST(LateDeltasTest, LearnAsMuchAsWaitingForEverybody) {
  bool late_applied = false;
  const double waiting = LossRatio({"--quorum-share", "1"}, &late_applied);
  EXPECT_FALSE(late_applied);
  EXPECT_LT(waiting, 0.9);
  const double late = LossRatio(
      {"--quorum-share", "0.5", "--deadline-slack-seconds", "0.1", "--late", "apply", "--late-versions-max", "8"},
      &late_applied);
  EXPECT_TRUE(late_applied);                  // the slow one is two or three versions late every time
  EXPECT_LT(1 - waiting, 1.25 * (1 - late));  // at least four fifths of what waiting learns
}

}  // namespace
}  // namespace autoloco::test
