// A disk that fills up, and one that is taken away: the server says so, loses nothing, and goes on when there is room
// again. The state folder lies on a small file system of its own; where the test may not mount one, it is skipped.
#include <sys/mount.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/cluster.h"

namespace autoloco::test {
namespace {

using ::testing::HasSubstr;

// Room for the first checkpoints of the small model (1.3 MB each) and not for all that are kept.
constexpr char kSmall[] = "size=3m";
// Not even room for one delta of it.
constexpr char kTiny[] = "size=16k";
constexpr char kLarge[] = "size=64m";

class SmallDisk {
 public:
  SmallDisk(const std::string& path, const char* size) : path_(path) {
    std::filesystem::create_directories(path);
    mounted_ = mount("tmpfs", path.c_str(), "tmpfs", 0, size) == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  bool Grow() { return mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT, kLarge) == 0; }

 private:
  const std::string path_;
  bool mounted_ = false;
};

std::string RunOn(Cluster* cluster, SmallDisk* disk) {
  const Arguments flags = Concat(Concat(SmallRun(24, 3, 2), {"--strict", "--seed", "7", "--checkpoint-every-rounds",
                                                             "1", "--checkpoint-keep", "8"}),
                                 WithMetrics());
  cluster->StartServer(flags);
  std::vector<std::unique_ptr<Process>> workers;
  for (const char* name : {"dc1", "dc2"}) workers.push_back(cluster->StartWorker({.name = name}));
  if (disk != nullptr) {
    const absl::StatusOr<std::string> alarm = cluster->server().WaitForLog(" storage_failed ", kPatience);
    EXPECT_TRUE(alarm.ok()) << alarm.status();
    EXPECT_THAT(alarm.value_or(""), ::testing::AnyOf(HasSubstr("No space left on device"), HasSubstr("disk is full")));
    const std::string metrics = ScrapeMetrics(cluster->metrics());
    EXPECT_GT(MetricValue(metrics, "autoloco_storage_failures_total"), 0);
    const StoredModel kept = NewestCheckpoint(cluster->state_dir());
    EXPECT_EQ(kept.digest, kept.manifest_digest) << "whatever could not be written, what is there is whole";
    EXPECT_TRUE(disk->Grow());
  }
  for (const auto& worker : workers) EXPECT_EQ(ExitCode(worker.get()), 0) << worker->Log();
  EXPECT_EQ(ExitCode(&cluster->server()), 0) << cluster->server().Log();
  const StoredModel model = NewestCheckpoint(cluster->state_dir());
  EXPECT_EQ(model.inner_step, 24u);
  EXPECT_EQ(model.digest, model.manifest_digest);
  return model.digest;
}

TEST(FullDiskTest, AnAlarmAndNothingIsLost) {
  Cluster full;
  SmallDisk disk(full.state_dir(), kSmall);
  if (!disk.mounted()) GTEST_SKIP() << "no right to mount a file system";
  Cluster roomy;
  const std::string want = RunOn(&roomy, nullptr);
  EXPECT_EQ(RunOn(&full, &disk), want);
  const Ended verified = RunProgram(kOperator, {"verify", full.state_dir()});
  EXPECT_EQ(verified.exit_code, 0) << verified.output << verified.log;
}

TEST(FullDiskTest, GivesUpWithAClearLineInTheEnd) {
  Cluster cluster;
  SmallDisk disk(cluster.state_dir(), kSmall);
  if (!disk.mounted()) GTEST_SKIP() << "no right to mount a file system";
  const std::string ballast = absl::StrCat(cluster.state_dir(), "/ballast");
  cluster.StartServer(Concat(SmallRun(12, 3, 1), {"--storage-retry-seconds", "0.1"}));
  // Everything that is left.
  const auto fill = Process::Start({"/bin/sh", "-c", absl::StrCat("cat /dev/zero > ", ballast, "; true")});
  ASSERT_TRUE(fill.ok()) << fill.status();
  ASSERT_EQ(ExitCode(fill->get()), 0);
  const auto worker = cluster.StartWorker({.name = "dc1"});
  EXPECT_EQ(ExitCode(&cluster.server()), 1) << cluster.server().Log();
  EXPECT_THAT(cluster.server().Log(), HasSubstr("nothing can be stored"));
  std::filesystem::remove(ballast);
  cluster.StartServer(SmallRun(12, 3, 1));
  EXPECT_EQ(ExitCode(worker.get()), 0) << worker->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
}

// Records find room, deltas do not: the spool is a disk of its own.
TEST(FullDiskTest, NoRoomForADeltaIsAnAlarmUntilThereIsSome) {
  Cluster cluster;
  SmallDisk spool(absl::StrCat(cluster.state_dir(), "/spool"), kTiny);
  if (!spool.mounted()) GTEST_SKIP() << "no right to mount a file system";
  cluster.StartServer(SmallRun(6, 3, 1));
  const auto worker = cluster.StartWorker({.name = "dc1"});
  cluster.WaitFor("a reason that says so", [](const v1::Status& status) {
    return absl::StrContains(status.reason(), "no room for deltas: cannot take room for a delta");
  });
  EXPECT_THAT(RunProgram(kOperator, {"status", "--server", cluster.address()}).output, HasSubstr("no room for deltas"));
  EXPECT_TRUE(spool.Grow());
  EXPECT_EQ(ExitCode(worker.get()), 0) << worker->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_THAT(cluster.ServerLines(" storage_failed "), ::testing::SizeIs(1));
  EXPECT_THAT(cluster.ServerLines(" storage_works_again "), ::testing::SizeIs(1));
}

TEST(FullDiskTest, GivesUpWhereThereIsNoRoomForADelta) {
  Cluster cluster;
  SmallDisk spool(absl::StrCat(cluster.state_dir(), "/spool"), kTiny);
  if (!spool.mounted()) GTEST_SKIP() << "no right to mount a file system";
  cluster.StartServer(Concat(SmallRun(6, 3, 1), {"--storage-retry-seconds", "0.1"}));
  const auto worker = cluster.StartWorker({.name = "dc1"});
  EXPECT_EQ(ExitCode(&cluster.server()), 1) << cluster.server().Log();
  EXPECT_THAT(cluster.server().Log(), HasSubstr("no room for deltas"));
  EXPECT_TRUE(spool.Grow());
  cluster.StartServer(SmallRun(6, 3, 1));
  EXPECT_EQ(ExitCode(worker.get()), 0) << worker->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
}

}  // namespace
}  // namespace autoloco::test
