// kill -9 of the server at every named place: a strict run that was cut there and goes on after a restart ends with the
// same parameters, bit for bit, as one that nobody disturbed; nothing that was acknowledged is lost or counts twice.
#include <csignal>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/storage/state_database.h"
#include "tests/e2e/cluster.h"

namespace autoloco::test {
namespace {

using ::testing::HasSubstr;

constexpr int kRounds = 4;
constexpr int kWorkers = 2;
constexpr int kSteps = 3;

// Of deltas and broadcasts: quantized ones have a view, and residuals on both sides.
enum class Codecs { kLossless, kQuantized };

Arguments Flags(int rounds, Codecs codecs = Codecs::kLossless) {
  const std::string codec = codecs == Codecs::kLossless ? "fp32" : "quantized";
  return Concat(SmallRun(rounds * kSteps, kSteps, kWorkers), {"--strict", "--seed", "7", "--checkpoint-every-rounds",
                                                              "2", "--codec.delta", codec, "--codec.broadcast", codec});
}

class CrashTest : public ::testing::Test {
 protected:
  void StartWorkers(int step_ms) {
    for (const char* name : {"dc1", "dc2"})
      workers_.push_back(cluster_.StartWorker({.name = name, .step_ms = step_ms}));
  }
  // The run ends by itself; its last parameters.
  std::string Finish(int rounds) {
    for (const auto& worker : workers_) EXPECT_EQ(ExitCode(worker.get()), 0) << worker->Log();
    EXPECT_EQ(ExitCode(&cluster_.server()), 0) << cluster_.server().Log();
    const Ended verified = RunProgram(kOperator, {"verify", cluster_.state_dir()});
    EXPECT_EQ(verified.exit_code, 0) << verified.output << verified.log;
    ExpectEveryDeltaOnce(rounds);
    const StoredModel model = NewestCheckpoint(cluster_.state_dir());
    EXPECT_EQ(model.inner_step, static_cast<std::uint64_t>(rounds * kSteps));
    EXPECT_EQ(model.digest, model.manifest_digest);
    return model.digest;
  }
  void ExpectEveryDeltaOnce(int rounds) {
    const auto database = server::StateDatabase::Open(
        absl::StrCat(cluster_.state_dir(), "/", server::kStateDatabaseFile), server::Database::Mode::kReadOnly);
    ASSERT_TRUE(database.ok()) << database.status();
    const auto decided = (*database)->DecidedRounds(0);
    ASSERT_TRUE(decided.ok()) << decided.status();
    EXPECT_EQ(decided->size(), static_cast<std::size_t>(rounds));
    for (const server::DecidedRound& round : *decided) {
      ASSERT_EQ(round.decision.contributions.size(), static_cast<std::size_t>(kWorkers));
      for (std::size_t i = 0; i < round.payload_digests.size(); ++i) {
        EXPECT_EQ(round.decision.contributions[i].push.worker.name, i == 0 ? "dc1" : "dc2");
        EXPECT_NE(round.payload_digests[i], "") << "an accepted delta";
      }
    }
  }

  Cluster cluster_;
  std::vector<std::unique_ptr<Process>> workers_;
};

// Digest of a run that nobody disturbs.
class UndisturbedRun : public CrashTest {
 public:
  void TestBody() override {}
  std::string Run(int rounds, Codecs codecs) {
    cluster_.StartServer(Flags(rounds, codecs));
    StartWorkers(0);
    return Finish(rounds);
  }
};

const std::string& UndisturbedDigest(int rounds, Codecs codecs = Codecs::kLossless) {
  static auto& digests = *new std::map<std::pair<int, Codecs>, std::string>();
  std::string& digest = digests[{rounds, codecs}];
  if (digest.empty()) digest = UndisturbedRun().Run(rounds, codecs);
  return digest;
}

class CrashPointTest : public CrashTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(CrashPointTest, TheRunEndsAsIfNothingHadHappened) {
  const std::string& want = UndisturbedDigest(kRounds);
  cluster_.StartServer(Flags(kRounds), {absl::StrCat("AUTOLOCO_CRASH_POINT=", GetParam())});
  StartWorkers(0);
  ASSERT_EQ(ExitCode(&cluster_.server()), 128 + SIGKILL) << "the place was never passed\n" << cluster_.server().Log();
  EXPECT_THAT(cluster_.server().Log(), HasSubstr("crash_point"));
  cluster_.StartServer(Flags(kRounds));
  EXPECT_EQ(Finish(kRounds), want) << cluster_.server().Log();
}

std::string PointName(const ::testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  for (char& c : name) c = c == ':' ? '_' : c;
  return name;
}

// The number after a colon: the how-manieth pass, so that it happens in mid-run.
INSTANTIATE_TEST_SUITE_P(Spool, CrashPointTest, ::testing::Values("spool_before:3", "spool_after:3"), PointName);
INSTANTIATE_TEST_SUITE_P(
    Records, CrashPointTest,
    ::testing::Values("record_before_run:4", "record_after_run:4", "record_before_member:2", "record_after_member:2",
                      "record_before_round_opened:2", "record_after_round_opened:2", "record_before_entry:5",
                      "record_after_entry:5", "record_before_push:3", "record_after_push:4",
                      "record_before_round_decided:2", "record_after_round_decided:2",
                      "record_before_round_committed:2", "record_after_round_committed:2", "record_before_evaluation:2",
                      "record_after_evaluation:2", "record_before_checkpoint", "record_after_checkpoint",
                      "record_before_lease:3", "record_after_lease:3", "record_before_ledger:3",
                      "record_after_ledger:3", "record_before_run_evaluated", "record_after_run_evaluated"),
    PointName);
INSTANTIATE_TEST_SUITE_P(Acknowledgement, CrashPointTest,
                         ::testing::Values("acknowledge_before:3", "acknowledge_after:3", "acknowledge_after:4"),
                         PointName);
INSTANTIATE_TEST_SUITE_P(Commit, CrashPointTest,
                         ::testing::Values("decision_after:2", "commit_before:2", "commit_middle:3", "commit_after:2",
                                           "snapshot_ready:2", "broadcast_before:3", "broadcast_after:3",
                                           "broadcast_after:4"),
                         PointName);
INSTANTIATE_TEST_SUITE_P(Checkpoint, CrashPointTest,
                         ::testing::Values("checkpoint_begun", "checkpoint_params", "checkpoint_renamed",
                                           "checkpoint_done", "checkpoint_begun:2", "checkpoint_done:2"),
                         PointName);

// The same where workers hold a view that only its broadcasts make: it comes back with the server, and no worker is
// told that it holds anything else.
class QuantizedCrashPointTest : public CrashPointTest {};

TEST_P(QuantizedCrashPointTest, TheRunEndsAsIfNothingHadHappened) {
  const std::string& want = UndisturbedDigest(kRounds, Codecs::kQuantized);
  const Arguments flags = Flags(kRounds, Codecs::kQuantized);
  cluster_.StartServer(flags, {absl::StrCat("AUTOLOCO_CRASH_POINT=", GetParam())});
  StartWorkers(0);
  ASSERT_EQ(ExitCode(&cluster_.server()), 128 + SIGKILL) << "the place was never passed\n" << cluster_.server().Log();
  cluster_.StartServer(flags);
  EXPECT_EQ(Finish(kRounds), want) << cluster_.server().Log();
  EXPECT_TRUE(cluster_.ServerLines("view_mismatch").empty()) << cluster_.server().Log();
}

INSTANTIATE_TEST_SUITE_P(View, QuantizedCrashPointTest,
                         ::testing::Values("spool_after:3", "record_after_round_decided:2", "commit_middle:3",
                                           "commit_after:2", "snapshot_ready:3", "record_before_round_committed:2",
                                           "record_after_round_committed:3", "broadcast_after:3", "checkpoint_params",
                                           "checkpoint_done"),
                         PointName);

// Whenever it comes: each server lives for a few more milliseconds than the one before, from its first word on.
TEST_F(CrashTest, AKillAtAnyMoment) {
  constexpr int kManyRounds = 12;
  constexpr int kKills = 8;
  const std::string& want = UndisturbedDigest(kManyRounds);
  cluster_.StartServer(Flags(kManyRounds));
  StartWorkers(20);
  for (int kill = 1; kill <= kKills; ++kill) {
    const std::uint64_t version = static_cast<std::uint64_t>(kill);
    cluster_.WaitForVersion(version);
    const absl::StatusOr<int> ended = cluster_.server().Wait(absl::Milliseconds(17 * kill));
    ASSERT_FALSE(ended.ok()) << "the run ended before it was killed often enough";
    cluster_.server().Signal(SIGKILL);
    EXPECT_EQ(ExitCode(&cluster_.server()), 128 + SIGKILL);
    cluster_.StartServer(Flags(kManyRounds));
  }
  EXPECT_EQ(Finish(kManyRounds), want) << cluster_.server().Log();
}

}  // namespace
}  // namespace autoloco::test
