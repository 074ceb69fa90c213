#include "server/rpc/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <variant>

#include "common/rpc/layout_proto.h"

namespace autoloco::server {
namespace {

v1::Identity SomeIdentity() {
  v1::Identity identity;
  identity.set_run_id("run");
  identity.set_worker("w");
  identity.set_incarnation(3);
  return identity;
}

absl::StatusCode CodeOf(const v1::WorkerMessage& message) { return ToSessionEvent(message, 1).status().code(); }

TEST(ConvertTest, Hello) {
  v1::WorkerMessage message;
  *message.mutable_hello()->mutable_identity() = SomeIdentity();
  message.mutable_hello()->set_protocol_version(9);
  const absl::StatusOr<SessionEvent> event = ToSessionEvent(message, 7);
  ASSERT_TRUE(event.ok()) << event.status();
  const auto& hello = std::get<HelloReceived>(*event);
  EXPECT_EQ(hello.session, 7);
  EXPECT_EQ(hello.protocol_version, 9);
  EXPECT_EQ(hello.sender.run_id, "run");
  EXPECT_EQ(hello.sender.worker, (WorkerId{"w", 3}));
}

TEST(ConvertTest, Progress) {
  v1::WorkerMessage message;
  v1::Progress* progress = message.mutable_progress();
  *progress->mutable_identity() = SomeIdentity();
  EXPECT_EQ(CodeOf(message), absl::StatusCode::kInvalidArgument) << "no phase";
  progress->set_phase(v1::Progress::PHASE_EVALUATING);
  progress->set_steps_done(4);
  progress->mutable_evaluation()->set_version(2);
  progress->mutable_evaluation()->set_loss_sum(1.5);
  progress->mutable_evaluation()->set_tokens(6);
  const auto received = std::get<ProgressReceived>(*ToSessionEvent(message, 7));
  EXPECT_EQ(received.progress.phase, WorkerPhase::kEvaluating);
  EXPECT_EQ(received.progress.steps_done, 4);
  ASSERT_TRUE(received.progress.evaluation.has_value());
  EXPECT_EQ(received.progress.evaluation->loss_sum, 1.5);
}

TEST(ConvertTest, RangesLieInsideThePayload) {
  v1::PushHeader header;
  header.set_payload_bytes(10);
  EXPECT_EQ(*ToRange(header), (ByteRange{0, 10}));
  header.set_first_byte(4);
  EXPECT_EQ(*ToRange(header), (ByteRange{4, 6}));
  header.set_byte_count(6);
  EXPECT_EQ(*ToRange(header), (ByteRange{4, 6}));
  header.set_byte_count(7);
  EXPECT_EQ(ToRange(header).status().code(), absl::StatusCode::kInvalidArgument);
  header.set_byte_count(std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(ToRange(header).status().code(), absl::StatusCode::kInvalidArgument);
  header.set_first_byte(10);
  header.set_byte_count(0);
  EXPECT_EQ(*ToRange(header), (ByteRange{10, 0}));
  header.set_first_byte(11);
  EXPECT_EQ(ToRange(header).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ConvertTest, PushStatusTellsWhatIsMissing) {
  const AnswerPushStatus unknown{.ticket = 1, .status = absl::OkStatus(), .known = false, .reason = ""};
  const v1::PushStatusReply reply = ToProto(unknown, {{4, 6}});
  EXPECT_FALSE(reply.known());
  ASSERT_EQ(reply.missing_size(), 1);
  EXPECT_EQ(reply.missing(0).first_byte(), 4u);
  EXPECT_EQ(reply.missing(0).byte_count(), 6u);
}

TEST(ConvertTest, MalformedSessionMessages) {
  v1::WorkerMessage message;
  EXPECT_EQ(CodeOf(message), absl::StatusCode::kInvalidArgument) << "empty";
  message.mutable_goodbye()->mutable_identity()->set_worker("has space");
  EXPECT_EQ(CodeOf(message), absl::StatusCode::kInvalidArgument) << "name";
  *message.mutable_goodbye()->mutable_identity() = SomeIdentity();
  message.mutable_goodbye()->set_reason(std::string(100000, 'x'));
  EXPECT_LE(std::get<GoodbyeReceived>(*ToSessionEvent(message, 7)).reason.size(), 256);
  message.mutable_goodbye()->mutable_identity()->set_run_id(std::string(1000, 'r'));
  EXPECT_EQ(CodeOf(message), absl::StatusCode::kInvalidArgument) << "run id";
}

TEST(ConvertTest, HelloWithADeltaOfAnEarlierLife) {
  v1::WorkerMessage message;
  *message.mutable_hello()->mutable_identity() = SomeIdentity();
  EXPECT_FALSE(std::get<HelloReceived>(*ToSessionEvent(message, 7)).held.has_value());
  v1::HeldDelta& held = *message.mutable_hello()->mutable_held();
  held.set_run_id("run");
  held.set_incarnation(3);
  held.set_round(9);
  held.set_payload_digest(std::string(32, 'a'));
  const HelloReceived hello = std::get<HelloReceived>(*ToSessionEvent(message, 7));
  ASSERT_TRUE(hello.held.has_value());
  EXPECT_EQ(hello.held->run_id, "run");
  EXPECT_EQ(hello.held->incarnation, 3);
  EXPECT_EQ(hello.held->round, 9);
  EXPECT_EQ(hello.held->payload_digest, std::string(32, 'a'));
  held.set_payload_digest("short");
  EXPECT_EQ(CodeOf(message), absl::StatusCode::kInvalidArgument);
  held.set_payload_digest(std::string(32, 'a'));
  held.set_run_id(std::string(1000, 'r'));
  EXPECT_EQ(CodeOf(message), absl::StatusCode::kInvalidArgument);
}

TEST(ConvertTest, PushHeader) {
  v1::RunConfig run;
  run.mutable_codec()->set_delta(v1::CodecConfig::DELTA_FP32);
  v1::PushHeader header;
  *header.mutable_identity() = SomeIdentity();
  header.set_round(5);
  header.set_payload_digest(std::string(32, 'a'));
  header.set_payload_bytes(100);
  header.set_codec(v1::CodecConfig::DELTA_BF16);
  header.mutable_report()->set_learning_rate_sum(0.5);
  absl::StatusOr<PushOpened> event = ToPushOpened(header, run, 7);
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->round, 5);
  EXPECT_EQ(event->payload_bytes, 100);
  EXPECT_FALSE(event->codec_matches);
  EXPECT_FALSE(event->leaving);
  EXPECT_EQ(event->report.learning_rate_sum, 0.5);
  for (const char* digest : {"", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "aaaa"}) {
    header.set_payload_digest(digest);
    EXPECT_EQ(ToPushOpened(header, run, 7).status().code(), absl::StatusCode::kInvalidArgument) << digest;
  }
}

TEST(ConvertTest, APullSaysWhatTheWorkerHolds) {
  v1::PullRequest request;
  *request.mutable_identity() = SomeIdentity();
  absl::StatusOr<PullOpened> event = ToPullOpened(request, 7);
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->ticket, 7);
  EXPECT_EQ(event->held_digest, "");
  EXPECT_EQ(event->part.form, PullForm::kUnspecified);
  request.set_held_version(4);
  request.set_held_digest(std::string(32, 'a'));
  request.set_held_mixed(true);
  request.set_header_only(true);
  request.mutable_part()->set_form(v1::PULL_FORM_BROADCAST);
  request.mutable_part()->set_version(5);
  request.mutable_part()->set_first_block(6);
  request.mutable_part()->set_block_count(8);
  event = ToPullOpened(request, 7);
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->held_version, 4);
  EXPECT_EQ(event->held_digest, std::string(32, 'a'));
  EXPECT_TRUE(event->held_mixed);
  EXPECT_TRUE(event->header_only);
  EXPECT_EQ(event->part.form, PullForm::kBroadcast);
  EXPECT_EQ(event->part.version, 5);
  EXPECT_EQ(event->part.first_block, 6);
  EXPECT_EQ(event->part.block_count, 8);
}

// The first of several streams does not know yet what it will be sent.
TEST(ConvertTest, APullMayAskForBlocksOfWhateverThereIs) {
  v1::PullRequest request;
  *request.mutable_identity() = SomeIdentity();
  request.mutable_part()->set_block_count(8);
  const absl::StatusOr<PullOpened> event = ToPullOpened(request, 7);
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->part.form, PullForm::kUnspecified);
  EXPECT_EQ(event->part.block_count, 8);
}

TEST(ConvertTest, APullThatHoldsNoWaterIsRefused) {
  v1::PullRequest digest;
  *digest.mutable_identity() = SomeIdentity();
  digest.set_held_digest("aaaa");
  EXPECT_EQ(ToPullOpened(digest, 7).status().code(), absl::StatusCode::kInvalidArgument);
  v1::PullRequest part;
  *part.mutable_identity() = SomeIdentity();
  part.mutable_part()->set_form(v1::PULL_FORM_NOTHING);
  EXPECT_EQ(ToPullOpened(part, 7).status().code(), absl::StatusCode::kInvalidArgument) << "it has no part";
  part.mutable_part()->set_form(static_cast<v1::PullForm>(77));
  EXPECT_EQ(ToPullOpened(part, 7).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ConvertTest, TheHeaderOfAPull) {
  PullAnswer answer;
  answer.form = PullForm::kBroadcast;
  answer.version = 5;
  answer.params_digest = "exact";
  answer.view_digest = "view";
  answer.layout_hash = 9;
  answer.codec = Codec::kTernary;
  answer.first_block = 2;
  answer.block_count = 3;
  answer.byte_count = 400;
  const v1::PullHeader header = ToProto(answer);
  EXPECT_EQ(header.form(), v1::PULL_FORM_BROADCAST);
  EXPECT_EQ(header.version(), 5);
  EXPECT_EQ(header.params_digest(), "exact");
  EXPECT_EQ(header.view_digest(), "view");
  EXPECT_EQ(header.layout_hash(), 9);
  EXPECT_EQ(header.codec(), v1::CodecConfig::DELTA_QUANTIZED);
  EXPECT_EQ(header.first_block(), 2);
  EXPECT_EQ(header.block_count(), 3);
  EXPECT_EQ(header.payload_bytes(), 400);
}

TEST(ConvertTest, ServerMessages) {
  RpcContext context;
  context.run_id = "run";
  context.run.set_seed(5);
  const v1::ServerMessage welcome =
      ToProto(SessionMessage(SendWelcome{1, 2, 3, "view", true, "why", PushOutcome::kLate}), context);
  EXPECT_TRUE(welcome.welcome().send_held());
  EXPECT_EQ(welcome.welcome().held_reason(), "why");
  EXPECT_EQ(welcome.welcome().held_outcome(), v1::PUSH_OUTCOME_LATE);
  EXPECT_EQ(welcome.welcome().run_id(), "run");
  EXPECT_EQ(welcome.welcome().incarnation(), 2);
  EXPECT_EQ(welcome.welcome().version(), 3);
  EXPECT_EQ(welcome.welcome().view_digest(), "view");
  EXPECT_EQ(welcome.welcome().config().seed(), 5);
  const v1::ServerMessage drain = ToProto(SessionMessage(SendDrain{1, true, "done"}), context);
  EXPECT_EQ(drain.drain().cause(), v1::Drain::CAUSE_RUN_DONE);
  const v1::ServerMessage closed = ToProto(SessionMessage(SendRoundClosed{1, 4, 5, "digest", "view"}), context);
  EXPECT_EQ(closed.round_closed().round(), 4);
  EXPECT_EQ(closed.round_closed().version(), 5);
  EXPECT_EQ(closed.round_closed().params_digest(), "digest");
  EXPECT_EQ(closed.round_closed().view_digest(), "view");
}

TEST(ConvertTest, StatusKeepsTheFirstAndTheLastEvaluations) {
  RpcContext context;
  ServerStatus status;
  status.now = absl::UnixEpoch() + absl::Seconds(10);
  for (Version version = 0; version < 50; ++version) status.run.evaluations.push_back({version, version * 5, 1.0, 10});
  WorkerStatus worker;
  worker.last_seen = absl::UnixEpoch() + absl::Seconds(8);
  status.run.workers.push_back(worker);
  status.run.ledger = {100, 40, 1, 2, 3, 4};
  status.run.ledger_outstanding = 50;
  const v1::Status proto = ToProto(status, context);
  ASSERT_EQ(proto.evaluations_size(), 21);
  EXPECT_EQ(proto.evaluations(0).version(), 0);
  EXPECT_EQ(proto.evaluations(1).version(), 30);
  EXPECT_EQ(proto.evaluations(20).version(), 49);
  EXPECT_EQ(proto.workers(0).last_seen_seconds(), 2);
  EXPECT_EQ(proto.ledger().leased(), 100);
  EXPECT_EQ(proto.ledger().applied(), 40);
  EXPECT_EQ(proto.ledger().late(), 1);
  EXPECT_EQ(proto.ledger().rejected(), 2);
  EXPECT_EQ(proto.ledger().lost(), 3);
  EXPECT_EQ(proto.ledger().unused(), 4);
  EXPECT_EQ(proto.ledger().outstanding(), 50);
  status.run.evaluations.resize(20);
  EXPECT_EQ(ToProto(status, context).evaluations_size(), 20);
}

TEST(ConvertTest, PushReplies) {
  EXPECT_EQ(ToProto(PushOutcome::kNonFinite, "why", true).outcome(), v1::PUSH_OUTCOME_NON_FINITE);
  AnswerPushStatus answer;
  EXPECT_FALSE(ToProto(answer, {}).has_reply());
  answer.known = true;
  answer.outcome = PushOutcome::kStale;
  EXPECT_EQ(ToProto(answer, {}).reply().outcome(), v1::PUSH_OUTCOME_STALE);
}

}  // namespace
}  // namespace autoloco::server
