// Workers that are wrong rather than lost: another run, other data, no data, numbers that are not finite. They say why
// and stop; the run goes on without them.
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/cluster.h"

namespace autoloco::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The last line of a worker's log, where it says why it ends.
std::string LastWord(Process* worker) {
  const absl::StatusOr<std::string> line = worker->WaitForLog(" finished ", kPatience);
  return line.ok() ? *line : std::string(line.status().message());
}

TEST(FaultsTest, AnotherRun) {
  Cluster cluster;
  cluster.StartServer(SmallRun(4, 4, 1));
  const auto wrong = cluster.StartWorker({.name = "dc1", .flags = {"--run-id", "other-00000000"}});
  EXPECT_EQ(ExitCode(wrong.get()), 2) << wrong->Log();
  EXPECT_THAT(LastWord(wrong.get()),
              AllOf(HasSubstr("other-00000000"), HasSubstr(LogValue(cluster.serving(), "run_id"))));

  const auto right =
      cluster.StartWorker({.name = "dc1", .flags = {"--run-id", LogValue(cluster.serving(), "run_id")}});
  EXPECT_EQ(ExitCode(right.get()), 0) << right->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
}

TEST(FaultsTest, OtherData) {
  Cluster cluster;
  cluster.StartServer(SmallRun(40, 4, 1));
  const auto right = cluster.StartWorker({.name = "dc1", .step_ms = 50});
  cluster.WaitForVersion(1);
  const std::string other = cluster.folder() + "/other.txt";
  {
    std::ofstream file(other);
    for (int i = 0; i < 500; ++i) file << "another text, line " << i << "\n";
  }
  const auto wrong = cluster.StartWorker({.name = "dc2", .flags = {"--data", other}});
  EXPECT_EQ(ExitCode(wrong.get()), 2) << wrong->Log();
  // Both sides by number of samples and hash.
  EXPECT_THAT(LastWord(wrong.get()),
              ::testing::ContainsRegex("has [0-9]+ samples and hash [0-9a-f]{16}, this worker.*s [0-9]+ and [0-9a-f]{16}"));
  EXPECT_EQ(ExitCode(right.get()), 0) << right->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_EQ(cluster.ServerLines(" round_committed ").size(), 10u);
}

TEST(FaultsTest, NoData) {
  Cluster cluster;
  cluster.StartServer(SmallRun(4, 4, 1));
  const std::string missing = cluster.folder() + "/missing.txt";
  const auto wrong = cluster.StartWorker({.name = "dc1", .flags = {"--data", missing}});
  EXPECT_EQ(ExitCode(wrong.get()), 2) << wrong->Log();
  EXPECT_THAT(LastWord(wrong.get()), HasSubstr(missing));
}

TEST(FaultsTest, ADeltaThatIsNotFinite) {
  Cluster cluster;
  cluster.StartServer(SmallRun(12, 4, 1));
  const auto sick =
      cluster.StartWorker({.name = "dc1", .step_ms = 50, .environment = {"FAKE_WORKER_NAN_STEP=2"}});
  EXPECT_EQ(ExitCode(sick.get()), 1) << sick->Log();
  EXPECT_THAT(LastWord(sick.get()), HasSubstr("not finite"));
  const v1::Status status = cluster.WaitFor(
      "dc1 left", [](const v1::Status& s) { return FindWorker(s, "dc1").state() == "left"; });
  EXPECT_EQ(status.version(), 0u);

  const auto healthy = cluster.StartWorker({.name = "dc2"});
  EXPECT_EQ(ExitCode(healthy.get()), 0) << healthy->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_EQ(cluster.ServerLines(" round_committed ").size(), 3u);
}

TEST(FaultsTest, TheOthersFinishTheRoundOfASickWorker) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(12, 4, 1), {"--start-workers", "2"}));
  const auto healthy = cluster.StartWorker({.name = "dc1", .step_ms = 50});
  const auto sick =
      cluster.StartWorker({.name = "dc2", .step_ms = 50, .environment = {"FAKE_WORKER_NAN_STEP=5"}});
  EXPECT_EQ(ExitCode(sick.get()), 1) << sick->Log();
  EXPECT_EQ(ExitCode(healthy.get()), 0) << healthy->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  const std::vector<std::string> commits = cluster.ServerLines(" round_committed ");
  ASSERT_EQ(commits.size(), 3u) << cluster.server().Log();
  EXPECT_EQ(LogValue(commits[0], "applied"), "2");
  EXPECT_EQ(LogValue(commits[1], "applied"), "1");
  EXPECT_EQ(LogValue(commits[2], "applied"), "1");
}

}  // namespace
}  // namespace autoloco::test
