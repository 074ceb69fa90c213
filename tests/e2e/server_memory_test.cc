// What the server needs while everything happens at once: for every parameter 12 bytes (parameters, momentum, view),
// the deltas of a round and the broadcasts it keeps as they are on the wire, and 200 MB. The number of workers counts
// by their deltas alone. Beside the rounds a checkpoint is written after every one, and a joiner pulls the live view
// over a slow link. Workers are processes with noise for training. Scaled down; in full length under the ctest label
// `long`.
#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/tensor/decoder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/cluster.h"
#include "tests/support/relay.h"

namespace autoloco::test {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kBytesPerParameter = 12;
constexpr std::uint64_t kOwnBytes = 200'000'000;
constexpr std::uint64_t kBroadcastsKept = 16;       // the default
constexpr std::uint64_t kStartOfAPull = 1'000'000;  // of one that is surely under way
constexpr double kSlowRate = 400e3;                 // the joiner's link, until enough has happened beside its pull

struct Case {
  std::uint32_t layers;  // 3.2 million parameters each
  std::uint32_t workers;
};

DecoderShape ShapeOf(const Case& size) {
  return {.vocab_size = 256,
          .width = 512,
          .layers = size.layers,
          .heads = 8,
          .kv_heads = 8,
          .mlp_hidden = 1408,
          .context = 2};
}

// Rounds of one inner step without end; everybody is waited for; a checkpoint after every round.
Arguments RunOf(const Case& size) {
  return {"--preset=custom",
          "--width=512",
          absl::StrCat("--layers=", size.layers),
          "--heads=8",
          "--kv-heads=8",
          "--mlp-hidden=1408",
          "--context=2",
          "--batch-size=1",
          "--evaluation.windows=0",
          "--warmup-steps=0",
          "--schedule=constant",
          "--inner.learning-rate=0.01",  // noise is as large as such steps may go
          "--outer.momentum=0",
          "--total-inner-steps=1000000",
          "--policy=fixed",
          "--interval.steps=1",
          "--quorum-share=1",
          "--match-speed=false",
          "--lease-seconds=300",
          "--checkpoint-every-rounds=1",
          absl::StrCat("--start-workers=", size.workers),
          absl::StrCat("--min-workers=", size.workers)};
}

// A number of /proc/PID/status, in bytes.
std::uint64_t StatusBytes(pid_t pid, const std::string& key) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key + ":", 0) == 0) return std::strtoull(line.c_str() + key.size() + 1, nullptr, 10) * 1024;
  }
  return 0;
}

// The largest payload that the worker has sent.
std::uint64_t LargestDelta(Process* worker) {
  std::uint64_t largest = 0;
  for (const std::string& line : LinesOf(worker, " delta_encoded ")) {
    std::uint64_t bytes = 0;
    if (absl::SimpleAtoi(LogValue(line, "bytes"), &bytes)) largest = std::max(largest, bytes);
  }
  return largest;
}

class ServerMemoryTest : public ::testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Process> StartWorker(std::uint32_t index, const std::string& server = {}) {
    return cluster_.StartWorker({.name = absl::StrCat("dc", index),
                                 .environment = {absl::StrCat("FAKE_WORKER_NOISE=", index)},
                                 .server = server});
  }
  // As Cluster::WaitFor; looks at the server's own memory meanwhile.
  v1::Status WaitFor(absl::string_view what, const std::function<bool(const v1::Status&)>& holds) {
    return cluster_.WaitFor(what, [&](const v1::Status& status) {
      most_anonymous_ = std::max(most_anonymous_, StatusBytes(cluster_.server().pid(), "RssAnon"));
      return holds(status);
    });
  }

  Cluster cluster_;
  std::uint64_t most_anonymous_ = 0;  // without the pages of mapped files: payloads, programs
};

TEST_P(ServerMemoryTest, TwelveBytesAParameterWhoeverComes) {
  const Case size = GetParam();
  const std::uint64_t params = MakeDecoderLayout(ShapeOf(size)).value().value_count();
  cluster_.StartServer(Concat(RunOf(size), WithMetrics()));
  std::vector<std::unique_ptr<Process>> workers;
  for (std::uint32_t index = 1; index <= size.workers; ++index) workers.push_back(StartWorker(index));
  WaitFor("the first round", [](const v1::Status& s) { return s.version() >= 1; });

  const auto relay = Relay::Start(cluster_.address()).value();
  relay->SetRate(Direction::kToClient, kSlowRate);
  workers.push_back(StartWorker(size.workers + 1, relay->address()));
  std::uint64_t version = 0;
  std::size_t checkpoints = 0;
  WaitFor("a pull under way", [&](const v1::Status& s) {
    version = s.version();
    checkpoints = cluster_.ServerLines(" checkpoint_written ").size();
    return relay->counts().carried[1] > kStartOfAPull;
  });
  WaitFor("rounds and a checkpoint beside it", [&](const v1::Status& s) {
    return s.version() >= version + 2 && cluster_.ServerLines(" checkpoint_written ").size() > checkpoints;
  });
  EXPECT_THAT(LinesOf(workers.back().get(), "\"live, "), IsEmpty()) << "the pull was over before";
  relay->SetRate(Direction::kToClient, 0);
  const v1::Status last =
      WaitFor("a round with the joiner's delta", [&](const v1::Status& s) { return s.applied() > size.workers; });
  EXPECT_THAT(LinesOf(workers.back().get(), "\"live, "), SizeIs(1)) << workers.back()->Log();

  const std::uint64_t peak = PeakResidentBytes(cluster_.server().pid());
  std::uint64_t deltas = 0;
  for (const auto& worker : workers) deltas += LargestDelta(worker.get());
  const double bytes_per_value = MetricValue(ScrapeMetrics(cluster_.metrics()), "autoloco_broadcast_bytes_per_value");
  ASSERT_GT(bytes_per_value, 0);
  const std::uint64_t kept = std::min(last.version(), kBroadcastsKept);
  const auto broadcasts = static_cast<std::uint64_t>(bytes_per_value * static_cast<double>(params * kept));
  const std::uint64_t own = kBytesPerParameter * params + broadcasts + kOwnBytes;
  std::cout << absl::StreamFormat(
      "%d parameters, %d workers: peak %d, anonymous %d; 12 bytes a parameter %d, deltas %d, %d broadcasts %d\n",
      params, size.workers, peak, most_anonymous_, kBytesPerParameter * params, deltas, kept, broadcasts);
  EXPECT_GT(peak, kBytesPerParameter * params);
  EXPECT_LE(peak, own + deltas);
  EXPECT_LE(most_anonymous_, own);
}

// About 10 million parameters; in full length 100 million too.
std::vector<Case> Cases() {
  std::vector<Case> cases = {{3, 2}, {3, 32}};
  if (FullCases()) cases.push_back({31, 2});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Sizes, ServerMemoryTest, ::testing::ValuesIn(Cases()), [](const auto& info) {
  return absl::StrCat(info.param.layers, "Layers", info.param.workers, "Workers");
});

}  // namespace
}  // namespace autoloco::test
