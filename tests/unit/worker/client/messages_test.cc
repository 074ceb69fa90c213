#include "worker/client/messages.h"

#include <gtest/gtest.h>

#include "tests/unit/worker/client/received_run.h"

namespace autoloco::worker {
namespace {

TEST(MessagesTest, RunSettingsComeFromTheRunConfig) {
  const absl::StatusOr<RunSettings> settings = ToRunSettings(ReceivedRun());
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->shape.width, 64u);
  EXPECT_EQ(settings->shape.layers, 2u);
  EXPECT_EQ(settings->seed, 5u);
  EXPECT_EQ(settings->total_inner_steps, 60u);
  EXPECT_EQ(settings->schedule.total_steps, 60u);
  EXPECT_EQ(settings->schedule.warmup_steps, 7u);
  EXPECT_EQ(settings->schedule.learning_rate, 0.004);
  EXPECT_EQ(settings->schedule.schedule, Schedule::kCosine);
  EXPECT_EQ(settings->adamw.weight_decay, 0.1);
  EXPECT_EQ(settings->batch_size, 8u);
  EXPECT_EQ(settings->coding.codec, Codec::kBf16);
  EXPECT_EQ(settings->broadcast.codec, Codec::kTernary);
  EXPECT_EQ(settings->evaluation_windows, 99u);
  EXPECT_FALSE(settings->strict);
}

TEST(MessagesTest, ARunConfigOutOfRangeIsRefused) {
  v1::RunConfig run = ReceivedRun();
  run.mutable_inner()->set_batch_size(0);
  const absl::Status status = ToRunSettings(run).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("batch_size"), absl::string_view::npos) << status;
  EXPECT_FALSE(ToRunSettings(v1::RunConfig()).ok());
}

TEST(MessagesTest, FormsOfPullsTranslateBothWays) {
  for (const PullForm form : {PullForm::kNothing, PullForm::kFull, PullForm::kBroadcast, PullForm::kLive}) {
    EXPECT_EQ(ToPullForm(ToProto(form)), form);
  }
  EXPECT_EQ(ToPullForm(v1::PULL_FORM_UNSPECIFIED), std::nullopt);
  EXPECT_EQ(ToPullForm(static_cast<v1::PullForm>(77)), std::nullopt);
}

TEST(MessagesTest, EveryMessageSaysWhoSpeaks) {
  const Identity identity{.run_id = "run-1", .incarnation = 3};
  for (const v1::Identity& proto :
       {HelloMessage(identity, "w", std::nullopt).hello().identity(),
        ReadyMessage({.identity = identity, .layout = {}}, "w").ready().identity(),
        ProgressMessage({.identity = identity, .evaluation = std::nullopt}, "w").progress().identity(),
        GoodbyeMessage(identity, "w", "bye").goodbye().identity(),
        PushHeaderMessage({.identity = identity, .delta = std::make_shared<EncodedDelta>()}, "w").identity()}) {
    EXPECT_EQ(proto.run_id(), "run-1");
    EXPECT_EQ(proto.worker(), "w");
    EXPECT_EQ(proto.incarnation(), 3u);
  }
}

TEST(MessagesTest, HelloNamesTheDeltaThatIsHeld) {
  EXPECT_FALSE(HelloMessage({}, "w", std::nullopt).hello().has_held());
  const HeldDelta held{
      .owner = {.run_id = "run-1", .incarnation = 7}, .assignment = {.round = 3, .inner_steps = 5}, .digest = "d"};
  const v1::WorkerMessage message = HelloMessage({.run_id = "", .incarnation = 0}, "w", held);
  EXPECT_EQ(message.hello().held().run_id(), "run-1");
  EXPECT_EQ(message.hello().held().incarnation(), 7u);
  EXPECT_EQ(message.hello().held().round(), 3u);
  EXPECT_EQ(message.hello().held().fragment(), 0u);
  EXPECT_EQ(message.hello().held().payload_digest(), "d");
}

TEST(MessagesTest, ProgressWithAndWithoutEvaluation) {
  ProgressReport report;
  report.phase = WorkerPhase::kEvaluating;
  report.round = 4;
  report.steps_done = 2;
  report.loss = 1.5;
  EXPECT_FALSE(ProgressMessage(report, "w").progress().has_evaluation());
  report.evaluation = EvaluationPart{.version = 4, .loss_sum = 12, .tokens = 6};
  const v1::WorkerMessage message = ProgressMessage(report, "w");
  EXPECT_EQ(message.progress().phase(), v1::Progress::PHASE_EVALUATING);
  EXPECT_EQ(message.progress().steps_done(), 2u);
  EXPECT_EQ(message.progress().evaluation().loss_sum(), 12);
  EXPECT_EQ(message.progress().evaluation().tokens(), 6u);
}

TEST(MessagesTest, ThePushHeaderCarriesTheReport) {
  EncodedDelta delta;
  delta.round = 9;
  delta.layout_hash = 77;
  delta.codec = Codec::kBf16;
  delta.payload = "bytes";
  delta.digest = "d";
  delta.report = {.inner_steps = 1,
                  .tokens = 2,
                  .learning_rate_sum = 3,
                  .loss_mean = 4,
                  .loss_first = 5,
                  .loss_last = 6,
                  .gradient_norm_mean = 7,
                  .step_seconds_mean = 8};
  const PushJob job{.leaving = true, .delta = std::make_shared<EncodedDelta>(delta)};
  const v1::PushHeader header = PushHeaderMessage(job, "w");
  EXPECT_TRUE(header.leaving());
  EXPECT_EQ(header.round(), 9u);
  EXPECT_EQ(header.fragment(), 0u);
  EXPECT_EQ(header.layout_hash(), 77u);
  EXPECT_EQ(header.codec(), v1::CodecConfig::DELTA_BF16);
  EXPECT_EQ(header.payload_bytes(), 5u);
  EXPECT_EQ(header.payload_digest(), "d");
  EXPECT_EQ(header.report().inner_steps(), 1u);
  EXPECT_EQ(header.report().tokens(), 2u);
  EXPECT_EQ(header.report().learning_rate_sum(), 3);
  EXPECT_EQ(header.report().loss_mean(), 4);
  EXPECT_EQ(header.report().loss_first(), 5);
  EXPECT_EQ(header.report().loss_last(), 6);
  EXPECT_EQ(header.report().gradient_norm_mean(), 7);
  EXPECT_EQ(header.report().step_seconds_mean(), 8);
}

TEST(MessagesTest, OutcomesOfAnotherVersionAreErrors) {
  EXPECT_EQ(*ToOutcome(v1::PUSH_OUTCOME_LATE), PushOutcome::kLate);
  EXPECT_EQ(ToOutcome(v1::PUSH_OUTCOME_UNSPECIFIED).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(ToOutcome(static_cast<v1::PushOutcome>(99)).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace autoloco::worker
