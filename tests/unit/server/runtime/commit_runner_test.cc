#include "server/runtime/commit_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "server/kernels/outer_step_reference.h"
#include "tests/support/runtime_fakes.h"

namespace autoloco::server {
namespace {

constexpr std::size_t kValues = 70000;

std::shared_ptr<Payload> Deliver(const std::vector<float>& delta) {
  const std::string bytes = EncodeVector(delta, Codec::kFp32, 1);
  std::shared_ptr<Payload> payload = *Payload::Allocate(bytes.size());
  EXPECT_TRUE(payload->Put(0, bytes).ok());
  return payload;
}

class CommitRunnerTest : public ::testing::Test {
 protected:
  const OuterCoefficients outer_{0.5, 0.25, true};
  ManualClock clock_;
  Inbox inbox_{&clock_};
  ParameterStore parameters_ = *ParameterStore::Allocate(*Layout::Make({{"t", {kValues}}}));
  FakeCheckpointStore checkpoints_;
  FakeTelemetry telemetry_;
  WorkPool pool_{2};
  CommitRunner runner_{{&clock_, &parameters_, &checkpoints_, &telemetry_, &pool_, &inbox_}};
};

TEST_F(CommitRunnerTest, MakesTheNextVersionAndItsSnapshot) {
  const auto one = Deliver(std::vector<float>(kValues, 1.0F));
  const auto two = Deliver(std::vector<float>(kValues, 3.0F));
  OuterStep step;
  step.learning_rate = outer_.learning_rate;
  step.momentum = {outer_.momentum, outer_.nesterov};
  runner_.Commit({4, {{one, "a", 0.5}, {two, "b", 0.5}}, step});
  const auto finished = std::get<CommitFinished>(*inbox_.Take(std::nullopt));

  std::vector<float> params(kValues);
  std::vector<float> momentum(kValues);
  const std::vector<Contribution> contributions = {{one->bytes(), Codec::kFp32, 0.5},
                                                   {two->bytes(), Codec::kFp32, 0.5}};
  ASSERT_TRUE(ApplyOuterStepReference(contributions, outer_, params, momentum).ok());
  EXPECT_EQ(finished.event.round, 4);
  EXPECT_EQ(finished.event.params_digest, Digest128(params));
  EXPECT_EQ(finished.event.view_digest, Digest128(params));
  EXPECT_EQ(finished.payload->header().form, PullForm::kFull);
  EXPECT_EQ(finished.payload->header().version, 5);
  EXPECT_EQ(finished.payload->header().params_digest, Digest128(params));
  EXPECT_EQ(absl::StrJoin(finished.payload->Pieces(0, finished.payload->payload_bytes()), ""),
            EncodeVector(params, Codec::kFp32, 1));
  EXPECT_NEAR(finished.event.stats.delta_norm_by_worker.at("b"), 3 * std::sqrt(kValues), 1e-6);
  EXPECT_NEAR(finished.event.stats.mean_delta_norm, 2 * std::sqrt(kValues), 1e-6);
  EXPECT_THAT(telemetry_.lines(), ::testing::ElementsAre(absl::StrCat(
                                      "commit 70000 values, ", finished.payload->payload_bytes(), " bytes")));
}

TEST_F(CommitRunnerTest, ACorrectedStepUsesItsFactors) {
  const auto delta = Deliver(std::vector<float>(kValues, 1.0F));
  OuterStep step;
  step.factors = {1.5, 0.5, 0.25, 0.75, false};
  runner_.Commit({4, {{delta, "a", 1.0}}, step});
  const auto finished = std::get<CommitFinished>(*inbox_.Take(std::nullopt));
  std::vector<float> params(kValues);
  std::vector<float> momentum(kValues);
  const std::vector<Contribution> contributions = {{delta->bytes(), Codec::kFp32, 1.0}};
  ASSERT_TRUE(
      ApplyOuterStepReference(contributions, {0.7, 0.9, true, CorrectedStep{1.5, 0.5, 0.25, 0.75}}, params, momentum)
          .ok());
  EXPECT_EQ(finished.event.params_digest, Digest128(params));
}

TEST_F(CommitRunnerTest, ACommitOvertakesACheckpointThatKeepsWhatWasThereBeforeIt) {
  std::promise<void> committed;
  checkpoints_.between_blocks = [wait = committed.get_future().share()] { wait.wait(); };
  CoreSnapshot snapshot;
  snapshot.version = 4;
  snapshot.history.resize(1);
  snapshot.history[0].round = 3;
  snapshot.history[0].params_digest = "of version 4";
  const std::string before = parameters_.ParamsDigest();
  runner_.Checkpoint(snapshot);
  runner_.Commit({4, {{Deliver(std::vector<float>(kValues, 1.0F)), "a", 1.0}}});
  const auto finished = std::get<CommitFinished>(*inbox_.Take(std::nullopt));
  committed.set_value();
  const auto stored = std::get<CheckpointFinished>(*inbox_.Take(std::nullopt));
  ASSERT_TRUE(stored.result.ok());
  EXPECT_EQ(stored.version, 4);
  EXPECT_EQ(checkpoints_.params_digest, "of version 4");
  EXPECT_EQ(Digest128(checkpoints_.params), before);
  EXPECT_EQ(checkpoints_.momentum, std::vector<float>(kValues));
  EXPECT_TRUE(checkpoints_.view.empty());
  EXPECT_NE(finished.event.params_digest, before);
}

TEST_F(CommitRunnerTest, CheckpointsAreWrittenOneAtATimeEachOfItsVersion) {
  std::vector<std::string> digests = {parameters_.ParamsDigest()};
  std::vector<std::string> stored;
  for (Round round = 0; round < 3; ++round) {
    CoreSnapshot snapshot;
    snapshot.version = round;
    runner_.Checkpoint(snapshot);
    runner_.Commit({round, {{Deliver(std::vector<float>(kValues, 1.0F)), "a", 1.0}}});
    for (int i = 0; i < 2; ++i) {
      const Input input = *inbox_.Take(std::nullopt);
      if (const auto* commit = std::get_if<CommitFinished>(&input)) digests.push_back(commit->event.params_digest);
      if (std::holds_alternative<CheckpointFinished>(input)) stored.push_back(Digest128(checkpoints_.params));
    }
  }
  digests.pop_back();
  EXPECT_EQ(stored, digests);
}

TEST_F(CommitRunnerTest, ALossyBroadcastAndTheViewItMakesAreStored) {
  CommitRunner::CommitJob job{4, {{Deliver(std::vector<float>(kValues, 1.0F)), "a", 1.0}}};
  job.method.broadcast = {static_cast<std::uint8_t>(Codec::kRms4), 1.5, 1};
  runner_.Commit(std::move(job));
  const auto finished = std::get<CommitFinished>(*inbox_.Take(std::nullopt));
  runner_.Checkpoint(CoreSnapshot());
  ASSERT_TRUE(std::holds_alternative<CheckpointFinished>(*inbox_.Take(std::nullopt)));
  EXPECT_EQ(finished.payload->header().form, PullForm::kBroadcast);
  EXPECT_EQ(finished.event.view_digest, Digest128(checkpoints_.view));
  EXPECT_NE(finished.event.view_digest, finished.event.params_digest);
}

TEST_F(CommitRunnerTest, AFailedCheckpointIsReported) {
  checkpoints_.failure = absl::ResourceExhaustedError("disk full");
  runner_.Checkpoint(CoreSnapshot());
  const auto stored = std::get<CheckpointFinished>(*inbox_.Take(std::nullopt));
  EXPECT_EQ(stored.result.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(telemetry_.lines(), ::testing::ElementsAre("checkpoint failed"));
}

using CommitRunnerDeathTest = CommitRunnerTest;

TEST_F(CommitRunnerDeathTest, DamagedPayloadsEndTheProcessWithOneLine) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::string bytes = EncodeVector(std::vector<float>(kValues, 1.0F), Codec::kFp32, 1);
  bytes.back() ^= 1;
  const std::shared_ptr<Payload> payload = *Payload::Allocate(bytes.size());
  ASSERT_TRUE(payload->Put(0, bytes).ok());
  EXPECT_DEATH(
      {
        runner_.Commit({4, {{payload, "a", 1.0}}});
        inbox_.Take(std::nullopt);
      },
      "commit_failed round=4");
}

}  // namespace
}  // namespace autoloco::server
