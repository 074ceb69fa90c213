// Bulk transfers of real workers over links that break or are narrow: what arrived before a cut is not sent again, the
// model is the same as without it, and the control channel is not held up.
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/cluster.h"
#include "tests/support/narrow_link.h"
#include "tests/support/relay.h"

namespace autoloco::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What a run sent over the link, and what it made.
struct Outcome {
  std::string digest;
  std::uint64_t bytes_up = 0;  // carried by the link, everything counted
  std::uint64_t bytes_down = 0;
  std::uint64_t cuts = 0;
  std::string log;  // of the worker
};

constexpr double kRate = 4e6;  // bytes a second: so slow that a cut in the middle of a transfer is one

// A model of 0.8 million parameters a layer, a lossless delta and snapshot of a MB or more for each; one inner step.
Arguments OneStep(int layers) {
  return {"--preset=custom",
          absl::StrCat("--layers=", layers),
          "--width=256",
          "--heads=4",
          "--kv-heads=4",
          "--mlp-hidden=704",
          "--batch-size=2",
          "--warmup-steps=1",
          "--total-inner-steps=1",
          "--policy=fixed",
          "--evaluation.windows=0",
          "--interval.steps=1",
          "--heartbeat-seconds=0.2",
          "--codec.delta=fp32",
          "--codec.broadcast=fp32"};
}

struct Cut {
  Direction direction = Direction::kToServer;
  std::uint64_t after = 0;  // bytes of one connection; 0: never
};

Outcome RunBehindRelay(int streams, const Cut& cut) {
  Cluster cluster;
  cluster.StartServer(Concat(OneStep(4), {"--strict"}));
  const std::unique_ptr<Relay> relay = Relay::Start(cluster.address()).value();
  relay->SetRate(cut.direction, kRate);
  if (cut.after > 0) relay->CutAfter(cut.direction, cut.after);
  const auto worker =
      cluster.StartWorker({.name = "dc1", .flags = {absl::StrCat("--streams=", streams)}, .server = relay->address()});
  EXPECT_EQ(ExitCode(worker.get()), 0) << worker->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();
  EXPECT_THAT(cluster.ServerLines(" round_committed "), SizeIs(1));
  Outcome outcome;
  outcome.digest = NewestCheckpoint(cluster.state_dir()).digest;
  outcome.bytes_up = relay->counts().carried[static_cast<std::size_t>(Direction::kToServer)];
  outcome.bytes_down = relay->counts().carried[static_cast<std::size_t>(Direction::kToClient)];
  outcome.cuts = relay->counts().cut;
  outcome.log = worker->Log();
  return outcome;
}

// ------------------------------------------------------------------------------------------- cuts

// A cut at 60 % of the transfer, of one stream or of the first of several that has carried so much of its part.
TEST(CutPushTest, GoesOnWithWhatIsMissing) {
  for (const int streams : {1, 3}) {
    const Outcome undisturbed = RunBehindRelay(streams, {Direction::kToServer, 0});
    const std::uint64_t delta_bytes = undisturbed.bytes_up;  // the rest is little
    EXPECT_GT(delta_bytes, 4'000'000u);
    const Outcome disturbed = RunBehindRelay(streams, {Direction::kToServer, delta_bytes * 6 / 10 / streams});
    EXPECT_GE(disturbed.cuts, 1u);
    EXPECT_THAT(disturbed.log, HasSubstr(" push_failed "));
    EXPECT_EQ(disturbed.digest, undisturbed.digest);
    EXPECT_LT(disturbed.bytes_up, delta_bytes + delta_bytes / 2);
  }
}

TEST(CutPullTest, GoesOnWithWhatIsMissing) {
  for (const int streams : {1, 3}) {
    const Outcome undisturbed = RunBehindRelay(streams, {Direction::kToClient, 0});
    const std::uint64_t all_bytes = undisturbed.bytes_down;  // of the first version, and of what was made of it
    EXPECT_GT(all_bytes, 4'000'000u);
    const Outcome disturbed = RunBehindRelay(streams, {Direction::kToClient, all_bytes / 2 * 6 / 10 / streams});
    EXPECT_GE(disturbed.cuts, 1u);
    EXPECT_THAT(disturbed.log, HasSubstr(" pull_failed "));
    EXPECT_EQ(disturbed.digest, undisturbed.digest);
    EXPECT_LT(disturbed.bytes_down, all_bytes + all_bytes / 4);
  }
}

// ------------------------------------------------------------------------------------------- one narrow link

// All connections of a worker share a link of 10 Mbit/s and its queue, which the transfers fill: the control channel's
// words wait behind no more than that. In full the delta is one of 20 MB.
TEST(NarrowLinkTest, BulkBytesDoNotDelayHeartbeats) {
  const int layers = FullCases() ? 11 : 4;
  const std::uint64_t push_bytes_min = FullCases() ? 20'000'000 : 7'000'000;
  const absl::StatusOr<std::unique_ptr<NarrowLink>> link = NarrowLink::Make(10e6, absl::Milliseconds(400));
  if (!link.ok()) GTEST_SKIP() << link.status();
  Cluster cluster;
  const Arguments flags =
      Concat(OneStep(layers), {"--lease-seconds=5", "--insecure", "--metrics-listen=", "--state-dir",
                               cluster.state_dir(), "--listen", (*link)->near_address() + ":0"});
  const auto server = Process::Start(Concat({ProgramPath(kServer)}, flags)).value();
  const std::string address = LogValue(server->WaitForLog(" serving ", kPatience).value(), "listen");
  const auto probe = Process::Start((*link)->Inside({ProgramPath("../tests/autoloco-link-probe"), address})).value();
  const auto worker = Process::Start((*link)->Inside({ProgramPath(kFakeWorker), "--server", address, "--insecure",
                                                      "--name", "dc1", "--data", cluster.data_dir()}))
                          .value();
  EXPECT_EQ(ExitCode(worker.get(), absl::Minutes(5)), 0) << worker->Log();
  EXPECT_EQ(ExitCode(server.get()), 0) << server->Log();
  probe->Signal(SIGKILL);
  ExitCode(probe.get());
  std::vector<double> seconds;
  for (const absl::string_view line : absl::StrSplit(probe->Output(), '\n', absl::SkipEmpty())) {
    double value = 0;
    ASSERT_TRUE(absl::SimpleAtod(line, &value)) << line;
    seconds.push_back(value);
  }
  ASSERT_GE(seconds.size(), 20u);
  std::sort(seconds.begin(), seconds.end());
  EXPECT_LT(seconds[seconds.size() * 99 / 100], 1.0);
  EXPECT_THAT(worker->Log(), HasSubstr("reason=accepted"));
  EXPECT_GT((*link)->BytesFromInside(), push_bytes_min);
  EXPECT_THAT(LinesOf(server.get(), " reason=lease_expired "), IsEmpty());
  EXPECT_THAT(LinesOf(server.get(), " reason=session_broken "), IsEmpty());
}

}  // namespace
}  // namespace autoloco::test
