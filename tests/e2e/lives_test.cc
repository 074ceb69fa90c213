// What a life of a process leaves behind, and what the next one finds: equal starting points, checkpoints that a kill
// cannot spoil, names of the dead. Scaled down; in full length under the ctest label `long`.
#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/storage/checkpoint_folder.h"
#include "tests/e2e/cluster.h"

namespace autoloco::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Before its first inner step a worker holds the server's parameters, by digest, whoever it is and whenever it comes.
TEST(StartingPointTest, EveryWorkerStartsFromTheServersParameters) {
  Cluster earlier;  // another run, which leaves its state with dc1
  const Arguments state = {"--state-dir", earlier.folder() + "/dc1"};
  earlier.StartServer(Concat(SmallRun(8, 4, 1), {"--seed", "7"}));
  const auto before = earlier.StartWorker({.name = "dc1", .flags = state});
  EXPECT_EQ(ExitCode(before.get()), 0) << before->Log();

  Cluster cluster;
  cluster.StartServer(SmallRun(4000, 4, 2));
  std::vector<std::unique_ptr<Process>> workers;
  workers.push_back(cluster.StartWorker({.name = "dc1", .step_ms = 100, .flags = state}));
  workers.push_back(cluster.StartWorker({.name = "another-name", .step_ms = 100}));
  cluster.WaitForVersion(2);
  workers.push_back(cluster.StartWorker({.name = "late", .step_ms = 100}));
  cluster.WaitFor("three deltas applied", [](const v1::Status& s) { return s.applied() == 3; });

  std::vector<std::string> digests = {LogValue(cluster.serving(), "view_digest")};  // by version
  for (const std::string& line : cluster.ServerLines(" round_committed ")) {
    digests.push_back(LogValue(line, "view_digest"));
  }
  for (const auto& worker : workers) {
    bool pulled = false;
    for (const std::string& line : LinesOf(worker.get(), " reason=")) {
      if (absl::StrContains(line, " assigned ")) {
        EXPECT_TRUE(pulled) << line;
      }
      if (!absl::StrContains(line, " pulled ") || !absl::StrContains(line, ", digest ")) continue;
      pulled = true;
      std::uint64_t version = 0;
      ASSERT_TRUE(absl::SimpleAtoi(LogValue(line, "round"), &version)) << line;
      if (version < digests.size()) {
        EXPECT_THAT(line, HasSubstr(digests[version]));
      }
    }
    EXPECT_TRUE(pulled) << worker->Log();
  }
}

// The server is killed again and again while it saves after every round, at moments drawn at random.
TEST(CheckpointTest, KillsDuringSavesNeverCostTheCheckpointBefore) {
  const int kills = FullCases() ? 20 : 6;
  const RandomStream random(1, 1);
  Cluster cluster;
  const Arguments flags = Concat(SmallRun(1'000'000, 1, 1), {"--checkpoint-every-rounds", "1"});
  cluster.StartServer(flags);
  const auto worker = cluster.StartWorker({.name = "dc1"});
  std::uint64_t saved_before = 0;
  for (int kill = 0; kill < kills; ++kill) {
    const v1::Status status = cluster.WaitFor("a checkpoint of this life", [&](const v1::Status& s) {
      return s.version() > saved_before + 1 && !s.checkpoint().empty();
    });
    absl::SleepFor(absl::Milliseconds(200 * random.Uniform(static_cast<std::uint64_t>(kill))));  // anywhere in a save
    cluster.server().Signal(SIGKILL);
    EXPECT_EQ(ExitCode(&cluster.server()), 128 + SIGKILL);
    const std::vector<std::string> written = cluster.ServerLines(" checkpoint_written ");
    ASSERT_FALSE(written.empty()) << cluster.server().Log();
    cluster.StartServer(flags);
    EXPECT_THAT(cluster.ServerLines(" checkpoint_damaged "), IsEmpty());
    std::uint64_t version = 0;
    ASSERT_TRUE(absl::SimpleAtoi(LogValue(cluster.serving(), "version"), &version)) << cluster.serving();
    std::uint64_t saved = 0;  // "…/step-0000000012"; a round is a step
    const std::string path = LogValue(written.back(), "path");
    ASSERT_TRUE(absl::SimpleAtoi(path.substr(path.rfind('-') + 1), &saved)) << path;
    EXPECT_GE(version, saved);
    saved_before = version;
    for (const auto& entry : std::filesystem::directory_iterator(cluster.state_dir() + "/checkpoints")) {
      EXPECT_TRUE(std::filesystem::exists(entry.path() / "manifest.json")) << entry.path();
    }
    EXPECT_EQ(worker->Wait(absl::ZeroDuration()).status().code(), absl::StatusCode::kDeadlineExceeded);
  }
  cluster.server().Signal(SIGTERM);
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  const StoredModel model = NewestCheckpoint(cluster.state_dir());
  EXPECT_EQ(model.digest, model.manifest_digest);
}

TEST(DeadMemberTest, DoesNotBlockThoseWhoComeAfter) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(8, 4, 2), {"--lease-seconds", "2"}));
  const auto dead = cluster.StartWorker({.name = "dc1"});
  cluster.WaitFor("dc1 ready", [](const v1::Status& s) { return FindWorker(s, "dc1").state() == "waiting"; });
  dead->Signal(SIGKILL);
  EXPECT_EQ(ExitCode(dead.get()), 128 + SIGKILL);
  cluster.WaitFor("dc1 stale", [](const v1::Status& s) { return FindWorker(s, "dc1").state() == "stale"; });
  const v1::Status left =
      cluster.WaitFor("dc1 left", [](const v1::Status& s) { return FindWorker(s, "dc1").state() == "left"; });
  EXPECT_THAT(FindWorker(left, "dc1").reason(), HasSubstr("lease_expired"));
  EXPECT_EQ(left.alive(), 0u);
  const auto second = cluster.StartWorker({.name = "dc2"});
  const auto third = cluster.StartWorker({.name = "dc3"});
  EXPECT_EQ(ExitCode(second.get()), 0) << second->Log();
  EXPECT_EQ(ExitCode(third.get()), 0) << third->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_THAT(cluster.ServerLines(" round_committed "), SizeIs(2));
}

}  // namespace
}  // namespace autoloco::test
