// The server's memory: flat over many rounds, bounded beside peers that stall or hardly read, and no more than a few
// times a large model. Scaled down; in full length under the ctest label `long`.
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/tensor/decoder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/cluster.h"
#include "tests/support/protocol_client.h"

namespace autoloco::test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
// What an allocator may keep, and the libraries' own.
constexpr std::uint64_t kSlackBytes = 32 * kMiB;

TEST(MemoryTest, FlatOverManyRounds) {
  const int rounds = FullCases() ? 500 : 150;
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(rounds + 1, 1, 2), {"--checkpoint-every-rounds", "20"}));
  const auto first = cluster.StartWorker({.name = "dc1"});
  const auto second = cluster.StartWorker({.name = "dc2"});
  cluster.WaitForVersion(static_cast<std::uint64_t>(rounds) / 5);
  const std::uint64_t early = ResidentBytes(cluster.server().pid());
  cluster.WaitForVersion(static_cast<std::uint64_t>(rounds));
  const std::uint64_t late = ResidentBytes(cluster.server().pid());
  EXPECT_GT(early, 0u);
  EXPECT_LT(late, early + kSlackBytes);
  EXPECT_EQ(ExitCode(first.get()), 0) << first->Log();
  EXPECT_EQ(ExitCode(second.get()), 0) << second->Log();
}

// Peers that open a push and fall silent, many of them at once.
TEST(MemoryTest, StalledPeersAreCutAndTakeNoMoreThanTheirDeltas) {
  const int peers = 64;
  const Layout layout = NanoLayout();
  Cluster cluster;
  cluster.StartServer({"--preset=nano", "--total-inner-steps=4", "--policy=fixed", "--interval.steps=4",
                       "--warmup-steps=2", absl::StrCat("--start-workers=", peers), "--lease-seconds=300",
                       "--heartbeat-seconds=1", "--stall-timeout-seconds=2", "--no-exit-when-done",
                       "--codec.delta=fp32"});
  const std::uint64_t model_bytes = layout.value_count() * sizeof(float);
  std::vector<std::unique_ptr<RawWorker>> workers;
  for (int i = 0; i < peers; ++i) {
    workers.push_back(RawWorker::Join(cluster.address(), absl::StrCat("w", i), layout).value());
  }
  const std::uint64_t before = ResidentBytes(cluster.server().pid());
  std::vector<float> delta(layout.value_count());
  for (std::size_t i = 0; i < delta.size(); ++i) delta[i] = static_cast<float>(RandomStream(1, 1).Normal(i));
  const std::string payload = EncodeVector(delta, Codec::kFp32, 1);
  struct Stalled {
    grpc::ClientContext context;
    v1::PushReply reply;
    std::unique_ptr<grpc::ClientWriter<v1::PushRequest>> writer;
  };
  std::vector<std::unique_ptr<Stalled>> stalled;
  for (const auto& worker : workers) {
    const absl::StatusOr<v1::Assignment> assignment = worker->WaitForAssignment();
    ASSERT_TRUE(assignment.ok()) << assignment.status();
    stalled.push_back(std::make_unique<Stalled>());
    Stalled& push = *stalled.back();
    push.writer = worker->client().bulk()->Push(&push.context, &push.reply);
    v1::PushHeader header = worker->Header(*assignment, payload);
    header.set_payload_bytes(model_bytes);  // announced, never sent
    std::vector<v1::PushRequest> messages = MakePush(header, payload);
    push.writer->Write(messages[0]);
    push.writer->Write(messages[1]);
  }
  std::uint64_t most = 0;
  for (const auto& push : stalled) {
    most = std::max(most, ResidentBytes(cluster.server().pid()));
    const grpc::Status status = push->writer->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
  }
  const absl::StatusOr<PulledParameters> pulled =
      workers[1]->client().Pull(workers[1]->identity(), layout.value_count());
  EXPECT_TRUE(pulled.ok()) << pulled.status();  // nobody is in another's way
  EXPECT_LT(most, before + peers * model_bytes + 100 * kMiB);
}

// 38 MB, more than the buffers on the way take.
TEST(MemoryTest, APeerThatStopsReadingIsCut) {
  const DecoderShape shape = {
      .vocab_size = 256, .width = 512, .layers = 3, .heads = 8, .kv_heads = 8, .mlp_hidden = 1408, .context = 64};
  Cluster cluster;
  cluster.StartServer(Concat(
      WithMetrics(), {"--preset=custom", "--width=512", "--layers=3", "--heads=8", "--kv-heads=8", "--mlp-hidden=1408",
                      "--context=64", "--total-inner-steps=4", "--policy=fixed", "--interval.steps=4",
                      "--warmup-steps=2", "--lease-seconds=300", "--stall-timeout-seconds=2"}));
  const auto worker = RawWorker::Join(cluster.address(), "dc1", MakeDecoderLayout(shape).value());
  ASSERT_TRUE(worker.ok()) << worker.status();
  const std::uint64_t before = ResidentBytes(cluster.server().pid());
  ProtocolClient lazy(cluster.address());
  grpc::ClientContext lazy_context;
  v1::PullRequest request;
  *request.mutable_identity() = (*worker)->identity();
  const auto reader = lazy.bulk()->Pull(&lazy_context, request);
  v1::PullReply header;
  EXPECT_TRUE(reader->Read(&header));
  constexpr char kCutPulls[] =
      "grpc_server_handled_total{grpc_code=\"CANCELLED\",grpc_method=\"Pull\","
      "grpc_service=\"autoloco.v1.ParameterServer\"}";
  const std::string metrics = ScrapeMetricsUntil(cluster.metrics(), kCutPulls, 1);
  EXPECT_EQ(MetricValue(metrics, kCutPulls), 1) << metrics;
  EXPECT_LT(ResidentBytes(cluster.server().pid()), before + kSlackBytes);
  v1::PullReply rest;
  while (reader->Read(&rest)) {
  }
  EXPECT_FALSE(reader->Finish().ok());
}

// A safetensors file of zeros with one tensor after the other, sparse on disk.
void WriteZeros(const Layout& layout, const std::string& path) {
  std::string header = "{";
  for (const TensorEntry& tensor : layout.tensors()) {
    std::string shape;
    for (const std::uint64_t size : tensor.spec.shape) absl::StrAppend(&shape, shape.empty() ? "" : ",", size);
    absl::StrAppend(&header, header.size() > 1 ? "," : "", "\"", tensor.spec.name, "\":{\"dtype\":\"F32\",\"shape\":[",
                    shape, "],\"data_offsets\":[", tensor.offset * sizeof(float), ",",
                    (tensor.offset + tensor.count) * sizeof(float), "]}");
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&size), sizeof(size));
  file << header;
  file.close();
  ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(sizeof(size) + header.size() + layout.value_count() * 4)), 0);
}

// Larger than any message may be: 128 MiB; in full length 3 GiB, more than a protobuf can hold at all.
TEST(LargeModelTest, PushAndPullWithinThreeTimesTheModel) {
  const DecoderShape shape = {.vocab_size = 256,
                              .width = FullCases() ? 2048u : 512u,
                              .layers = FullCases() ? 16u : 10u,
                              .heads = 8,
                              .kv_heads = 8,
                              .mlp_hidden = FullCases() ? 5504u : 1408u,
                              .context = 64};
  const Layout layout = MakeDecoderLayout(shape).value();
  const std::uint64_t model_bytes = layout.value_count() * sizeof(float);
  ASSERT_GT(model_bytes, FullCases() ? 3000 * kMiB : 120 * kMiB);
  Cluster cluster;
  const std::string zeros = cluster.folder() + "/zeros.safetensors";
  WriteZeros(layout, zeros);
  cluster.StartServer(
      {"--preset=custom", absl::StrCat("--width=", shape.width), absl::StrCat("--layers=", shape.layers), "--heads=8",
       "--kv-heads=8", absl::StrCat("--mlp-hidden=", shape.mlp_hidden), "--context=64",
       absl::StrCat("--init-from=", zeros), "--evaluation.windows=0", "--warmup-steps=1", "--total-inner-steps=2",
       "--policy=fixed", "--interval.steps=1", "--lease-seconds=600", "--checkpoint-every-rounds=0",
       "--codec.delta=fp32", "--codec.broadcast=fp32"});  // payloads of the model's size, both ways
  const auto worker = RawWorker::Join(cluster.address(), "dc1", layout);
  ASSERT_TRUE(worker.ok()) << worker.status();
  const absl::StatusOr<v1::Assignment> assignment = (*worker)->WaitForAssignment();
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  std::vector<float> delta(layout.value_count());
  delta.back() = 1;
  const absl::StatusOr<v1::PushReply> reply = (*worker)->PushDelta(*assignment, delta);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->outcome(), v1::PUSH_OUTCOME_ACCEPTED) << reply->reason();
  cluster.WaitForVersion(1);
  const absl::StatusOr<PulledParameters> pulled = (*worker)->client().Pull((*worker)->identity(), layout.value_count());
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_LT(pulled->values.back(), 0);
  EXPECT_LT(ResidentBytes(cluster.server().pid()), 3 * model_bytes + kSlackBytes);
}

}  // namespace
}  // namespace autoloco::test
