// Bulk transfers of real workers over links that break: what arrived before the cut is not sent again, and the model is
// the same as without it.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/cluster.h"
#include "tests/support/relay.h"

namespace autoloco::test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// What a run sent over the link, and what it made.
struct Outcome {
  std::string digest;
  std::uint64_t bytes_up = 0;  // carried by the link, everything counted
  std::uint64_t cuts = 0;
  std::string log;  // of the worker
};

// One round of a model of three million parameters: a delta of several MB. `cut_after`: bytes of one connection to the
// server; 0: never.
Outcome RunBehindRelay(int streams, std::uint64_t cut_after) {
  Cluster cluster;
  cluster.StartServer({"--preset=custom", "--width=256", "--heads=4", "--kv-heads=4", "--layers=4", "--mlp-hidden=704",
                       "--batch-size=2", "--evaluation.windows=0", "--warmup-steps=1", "--total-inner-steps=1",
                       "--policy=fixed", "--interval.steps=1", "--heartbeat-seconds=0.2", "--strict"});
  const std::unique_ptr<Relay> relay = Relay::Start(cluster.address()).value();
  // So slow that a cut in the middle of the push is one.
  relay->SetRate(Direction::kToServer, 4e6);
  if (cut_after > 0) relay->CutAfter(Direction::kToServer, cut_after);
  const auto worker =
      cluster.StartWorker({.name = "dc1", .flags = {absl::StrCat("--streams=", streams)}, .server = relay->address()});
  EXPECT_EQ(ExitCode(worker.get()), 0) << worker->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_THAT(cluster.ServerLines(" round_committed "), SizeIs(1));
  Outcome run;
  run.digest = NewestCheckpoint(cluster.state_dir()).digest;
  run.bytes_up = relay->counts().carried[static_cast<std::size_t>(Direction::kToServer)];
  run.cuts = relay->counts().cut;
  run.log = worker->Log();
  return run;
}

TEST(CutPushTest, GoesOnWithWhatIsMissing) {
  const Outcome undisturbed = RunBehindRelay(1, 0);
  EXPECT_EQ(undisturbed.cuts, 0u);
  const std::uint64_t delta_bytes = undisturbed.bytes_up;  // the rest is little
  EXPECT_GT(delta_bytes, 4'000'000u);
  const Outcome disturbed = RunBehindRelay(1, delta_bytes * 6 / 10);
  EXPECT_EQ(disturbed.cuts, 1u);
  EXPECT_THAT(disturbed.log, HasSubstr(" push_failed "));
  EXPECT_EQ(disturbed.digest, undisturbed.digest);
  EXPECT_LT(disturbed.bytes_up, delta_bytes + delta_bytes / 2);
}

TEST(CutPushTest, OneOfSeveralStreams) {
  const Outcome undisturbed = RunBehindRelay(3, 0);
  const std::uint64_t delta_bytes = undisturbed.bytes_up;
  EXPECT_GT(delta_bytes, 4'000'000u);
  const Outcome disturbed =
      RunBehindRelay(3, delta_bytes / 5);  // the first connection that has carried 60 % of its part
  EXPECT_GE(disturbed.cuts, 1u);           // the worker drops the others
  EXPECT_THAT(disturbed.log, HasSubstr(" push_failed "));
  EXPECT_EQ(disturbed.digest, undisturbed.digest);
  EXPECT_LT(disturbed.bytes_up, delta_bytes + delta_bytes / 2);
}

}  // namespace
}  // namespace autoloco::test
