// Strict mode: equal seeds give equal parameters, to the last bit, from run to run and whoever starts first.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/cluster.h"

namespace autoloco::test {
namespace {

struct Run {
  std::string digest;
  double first_loss = 0;
  double last_loss = 0;
};

// A strict run of two workers, the second of `names` started when the first has joined. As a fake worker the second is
// also the slower one, so that its deltas come last.
Run RunStrict(const char* program, const std::vector<std::string>& names, int seed, const std::string& codec) {
  Cluster cluster;
  cluster.StartServer(Concat(SmallRun(15, 5, 2), {"--strict", "--seed", absl::StrCat(seed), "--inner.learning-rate",
                                                  "3e-3", "--codec.delta", codec, "--codec.broadcast", codec}));
  std::vector<std::unique_ptr<Process>> workers;
  for (const std::string& name : names) {
    const int step_ms = workers.empty() ? 0 : 30;
    workers.push_back(cluster.StartWorker({.name = name, .step_ms = step_ms, .program = program}));
    EXPECT_TRUE(workers.back()->WaitForLog(" joined ", kPatience).ok());
  }
  for (const auto& worker : workers) EXPECT_EQ(ExitCode(worker.get()), 0) << worker->Log();
  EXPECT_EQ(ExitCode(&cluster.server()), 0) << cluster.server().Log();

  const StoredModel model = NewestCheckpoint(cluster.state_dir());
  EXPECT_EQ(model.inner_step, 15u);
  EXPECT_EQ(model.digest, model.manifest_digest);
  Run run;
  run.digest = model.digest;
  const std::vector<std::string> evaluations = cluster.ServerLines(" evaluation ");
  EXPECT_EQ(evaluations.size(), 4u) << cluster.server().Log();
  if (!evaluations.empty()) {
    run.first_loss = std::stod(LogValue(evaluations.front(), "loss"));
    run.last_loss = std::stod(LogValue(evaluations.back(), "loss"));
  }
  return run;
}

void ExpectReproducible(const char* program, const std::string& codec = "quantized") {
  const Run first = RunStrict(program, {"dc1", "dc2"}, 1, codec);
  EXPECT_FALSE(first.digest.empty());
  EXPECT_LT(first.last_loss, first.first_loss);

  const Run again = RunStrict(program, {"dc1", "dc2"}, 1, codec);
  EXPECT_EQ(again.digest, first.digest);
  EXPECT_EQ(again.last_loss, first.last_loss);

  const Run other_order = RunStrict(program, {"dc2", "dc1"}, 1, codec);
  EXPECT_EQ(other_order.digest, first.digest);
  EXPECT_EQ(other_order.last_loss, first.last_loss);

  const Run other_seed = RunStrict(program, {"dc1", "dc2"}, 2, codec);
  EXPECT_NE(other_seed.digest, first.digest);
}

// With residuals on both sides.
TEST(DeterminismTest, FakeWorkers) { ExpectReproducible(kFakeWorker); }

TEST(DeterminismTest, FakeWorkersLossless) { ExpectReproducible(kFakeWorker, "fp32"); }

#ifdef AUTOLOCO_WITH_LIBTORCH
TEST(DeterminismTest, RealWorkers) { ExpectReproducible(kWorker); }
#endif

}  // namespace
}  // namespace autoloco::test
