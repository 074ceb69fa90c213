#include "tests/e2e/server_fixture.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/random.h"
#include "common/codec/delta_codec.h"
#include "common/config/convert.h"
#include "common/config/load.h"
#include "common/tensor/decoder.h"
#include "server/kernels/outer_step_reference.h"

namespace autoloco::test {
namespace {

Layout LayoutOf(const std::vector<std::string>& model) {
  std::vector<std::string> flags = {"--state-dir", "unused"};
  flags.insert(flags.end(), model.begin(), model.end());
  v1::ServerConfig config;
  const Outcome outcome = LoadServerConfig(flags, {}, &config);
  AUTOLOCO_CHECK(!outcome.exits);
  absl::StatusOr<Layout> layout = MakeDecoderLayout(ToDecoderShape(config.run().model()));
  AUTOLOCO_CHECK(layout.ok());
  return *std::move(layout);
}

}  // namespace

Layout NanoLayout() { return LayoutOf({"--model.preset", "nano"}); }

ServerFixture::ServerFixture(std::vector<std::string> model) : model_(std::move(model)), layout_(LayoutOf(model_)) {}

void ServerFixture::StartServer(const std::vector<std::string>& flags) {
  std::vector<std::string> all = {"--total-inner-steps", "100", "--interval.steps", "5", "--min-workers", "1",
                                  "--start-workers", "2", "--lease-seconds", "300", "--evaluation.windows", "0",
                                  "--inner.warmup-steps", "1", "--drain-seconds", "2",
                                  // What is sent by hand and compared with the reference kernel.
                                  "--codec.delta", "fp32", "--codec.broadcast", "fp32"};
  all.insert(all.end(), model_.begin(), model_.end());
  all.insert(all.end(), flags.begin(), flags.end());
  absl::StatusOr<ServerProcess> server = ServerProcess::Start(folder_.path(), all);
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
}

void ServerFixture::JoinBoth() {
  absl::StatusOr<std::unique_ptr<RawWorker>> a = RawWorker::Join(server_.address, "a", layout_);
  ASSERT_TRUE(a.ok()) << a.status();
  a_ = *std::move(a);
  absl::StatusOr<std::unique_ptr<RawWorker>> b = RawWorker::Join(server_.address, "b", layout_);
  ASSERT_TRUE(b.ok()) << b.status();
  b_ = *std::move(b);
  const absl::StatusOr<v1::Assignment> assignment_a = a_->WaitForAssignment();
  ASSERT_TRUE(assignment_a.ok()) << assignment_a.status();
  assignment_a_ = *assignment_a;
  const absl::StatusOr<v1::Assignment> assignment_b = b_->WaitForAssignment();
  ASSERT_TRUE(assignment_b.ok()) << assignment_b.status();
  assignment_b_ = *assignment_b;
  EXPECT_EQ(assignment_a_.inner_steps(), 5);
}

std::vector<float> ServerFixture::SomeDelta(float scale) const {
  std::vector<float> delta(layout_.value_count());
  const RandomStream random(1, 2);
  for (std::size_t i = 0; i < delta.size(); ++i) delta[i] = scale * static_cast<float>(random.Normal(i));
  return delta;
}

void ServerFixture::ExpectUnharmed() {
  const PulledParameters& start = a_->parameters();
  absl::StatusOr<v1::Status> status = a_->client().GetStatus();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->version(), 0);
  EXPECT_EQ(status->params_digest(), start.header.params_digest());

  const std::vector<float> delta = SomeDelta(0.01F);
  const absl::StatusOr<v1::PushReply> reply = a_->PushDelta(assignment_a_, delta);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->outcome(), v1::PUSH_OUTCOME_ACCEPTED) << reply->reason();
  b_->SayGoodbye();
  status = a_->client().WaitForVersion(1);
  ASSERT_TRUE(status.ok()) << status.status();

  std::vector<float> params = start.values;
  std::vector<float> momentum(params.size());
  const std::string payload = EncodeVector(delta, Codec::kFp32, 1);
  const server::Contribution contribution{std::as_bytes(std::span(payload.data(), payload.size())), Codec::kFp32, 1};
  const v1::OuterConfig& outer = a_->run().outer();
  ASSERT_TRUE(server::ApplyOuterStepReference(std::span(&contribution, 1),
                                              {outer.learning_rate(), outer.momentum(), outer.nesterov()}, params,
                                              momentum)
                  .ok());
  EXPECT_EQ(status->params_digest(), Digest128(params));
  const absl::StatusOr<PulledParameters> pulled = a_->client().Pull(a_->identity(), params.size());
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(pulled->header.params_digest(), Digest128(pulled->values));
  EXPECT_EQ(pulled->header.params_digest(), Digest128(params));
}

}  // namespace autoloco::test
