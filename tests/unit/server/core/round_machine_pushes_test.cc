// Pushes and pulls: a delta counts once or not at all, and everyone is told why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "server/core/push_register.h"
#include "tests/support/core_script.h"

namespace autoloco::server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Pushes : public testing::Test {
 protected:
  Pushes() {
    script_.Join("a");
    script_.Join("b");
    script_.Clear();
  }

  // A header that would be admitted.
  PushOpened Header(const std::string& name) {
    PushOpened push;
    push.ticket = next_ticket_++;
    push.sender = script_.SenderOf(name);
    push.round = script_.Status().round;
    push.payload_digest = "d";
    push.payload_bytes = 100;
    push.layout_hash = SmallLayout().hash();
    push.report.inner_steps = 5;
    return push;
  }
  void ExpectRefused(const PushOpened& push, absl::StatusCode code, const std::string& text, Reason reason) {
    script_.Clear();
    script_.Say(push);
    ASSERT_TRUE(script_.Last<RefusePush>());
    EXPECT_EQ(script_.Last<RefusePush>()->ticket, push.ticket);
    EXPECT_EQ(script_.Last<RefusePush>()->status.code(), code);
    EXPECT_THAT(std::string(script_.Last<RefusePush>()->status.message()), HasSubstr(text));
    EXPECT_EQ(script_.Decided(reason), 1);
    EXPECT_FALSE(script_.Last<AdmitPush>());
  }

  CoreScript script_;
  Ticket next_ticket_ = 1000;
};

TEST_F(Pushes, AGoodHeaderIsAdmittedWithItsSize) {
  const PushOpened push = Header("a");
  script_.Say(push);
  ASSERT_TRUE(script_.Last<AdmitPush>());
  EXPECT_EQ(script_.Last<AdmitPush>()->ticket, push.ticket);
  EXPECT_EQ(script_.Last<AdmitPush>()->payload_bytes, 100u);
}

TEST_F(Pushes, AWorkerThatLeavesMaySendLessThanItsInterval) {
  PushOpened push = Header("a");
  push.report.inner_steps = 2;
  ExpectRefused(push, absl::StatusCode::kInvalidArgument, "assigned 5, got 2", Reason::kMalformed);
  push.leaving = true;
  push.report.inner_steps = 0;
  ExpectRefused(push, absl::StatusCode::kInvalidArgument, "assigned 5, got 0", Reason::kMalformed);
  push.report.inner_steps = 6;
  ExpectRefused(push, absl::StatusCode::kInvalidArgument, "assigned 5, got 6", Reason::kMalformed);
  push.report.inner_steps = 2;
  script_.Clear();
  script_.Say(push);
  EXPECT_TRUE(script_.Last<AdmitPush>());
}

// Peak rate 0.01, 4 samples a step of 1 token: what five steps can have done at most.
TEST_F(Pushes, NobodyGainsWeightByWhatItSaysItDid) {
  PushOpened push = Header("a");
  push.report.learning_rate_sum = 0.0501;
  ExpectRefused(push, absl::StatusCode::kInvalidArgument, "learning_rate_sum of 5 inner steps", Reason::kMalformed);
  push.report.learning_rate_sum = 1e300;
  ExpectRefused(push, absl::StatusCode::kInvalidArgument, "got 1e+300", Reason::kMalformed);
  push.report.learning_rate_sum = 0.05 * (1 + 1e-9);
  push.report.tokens = 21;
  ExpectRefused(push, absl::StatusCode::kInvalidArgument, "at most 20, got 21", Reason::kMalformed);
  push.report.tokens = 20;
  script_.Clear();
  script_.Say(push);
  EXPECT_TRUE(script_.Last<AdmitPush>());
}

TEST_F(Pushes, NobodyCountsOnAWorkerThatSentItsLastDelta) {
  PushOpened push = Header("a");
  push.leaving = true;
  script_.Say(push);
  script_.Say(PushVerified{push.ticket, absl::OkStatus(), true, ""});
  script_.Join("c");
  script_.Push("b");
  script_.Clear();
  script_.Commit();
  std::set<Ticket> assigned;
  for (const SendAssignment& assignment : script_.All<SendAssignment>()) assigned.insert(assignment.session);
  EXPECT_EQ(assigned, (std::set<Ticket>{script_.SessionOf("b"), script_.SessionOf("c")}));
}

TEST_F(Pushes, HeadersThatDoNotFitAreRefusedBeforeTheirBytesCome) {
  PushOpened push = Header("a");
  push.sender.run_id = "run-2";
  ExpectRefused(push, absl::StatusCode::kFailedPrecondition, "this is run run-1, got run-2", Reason::kWrongRun);
  push = Header("a");
  push.layout_hash ^= 1;
  ExpectRefused(push, absl::StatusCode::kFailedPrecondition, "layout hash: want", Reason::kWrongLayout);
  push = Header("a");
  push.payload_bytes = 1001;
  ExpectRefused(push, absl::StatusCode::kInvalidArgument, "want 1 to 1000, got 1001", Reason::kWrongSize);
  push = Header("a");
  push.payload_bytes = 0;
  ExpectRefused(push, absl::StatusCode::kInvalidArgument, "got 0", Reason::kWrongSize);
  push = Header("a");
  push.codec_matches = false;
  ExpectRefused(push, absl::StatusCode::kInvalidArgument, "codec", Reason::kMalformed);
  push = Header("a");
  push.fragment = 1;
  ExpectRefused(push, absl::StatusCode::kInvalidArgument, "fragment: want 0, got 1", Reason::kMalformed);
  push = Header("a");
  push.round = 3;
  ExpectRefused(push, absl::StatusCode::kInvalidArgument, "round 3 has not opened", Reason::kMalformed);
  push = Header("a");
  push.report.inner_steps = 4;
  ExpectRefused(push, absl::StatusCode::kInvalidArgument, "assigned 5, got 4", Reason::kMalformed);
  push = Header("a");
  push.sender.worker.incarnation = 99;
  ExpectRefused(push, absl::StatusCode::kFailedPrecondition, "incarnation expired", Reason::kFenced);
  push = Header("a");
  push.sender.worker.name = "nobody";
  ExpectRefused(push, absl::StatusCode::kFailedPrecondition, "incarnation expired", Reason::kFenced);
}

TEST_F(Pushes, AWorkerWithoutAPartInTheRoundIsRefused) {
  script_.Join("c");
  ExpectRefused(Header("c"), absl::StatusCode::kFailedPrecondition, "has no part in round 0", Reason::kNotAssigned);
}

TEST_F(Pushes, AnOlderLifeIsFencedAtTheHeaderAndAtTheEnd) {
  const PushOpened before = Header("a");
  script_.Say(before);
  PushOpened after = Header("a");
  script_.Join("a");
  ExpectRefused(after, absl::StatusCode::kFailedPrecondition, "incarnation replaced", Reason::kFenced);
  script_.Clear();
  script_.Say(PushVerified{before.ticket, absl::OkStatus(), true, ""});
  EXPECT_THAT(std::string(script_.Last<RefusePush>()->status.message()), StartsWith("incarnation replaced"));
  EXPECT_EQ(script_.Last<DropPayload>()->ticket, before.ticket);
}

TEST_F(Pushes, TheSameDeltaAgainGetsTheRecordedOutcome) {
  script_.Push("a", "d");
  script_.Clear();
  const PushOpened again = Header("a");
  script_.Say(again);
  ASSERT_TRUE(script_.Last<AnswerPush>());
  EXPECT_EQ(script_.Last<AnswerPush>()->outcome, PushOutcome::kAccepted);
  EXPECT_TRUE(script_.Last<AnswerPush>()->replayed);
  EXPECT_FALSE(script_.Last<AdmitPush>());
  script_.Push("b");
  EXPECT_EQ(script_.Last<StartCommit>()->contributions.size(), 2u);
  script_.Commit();
  script_.Clear();
  PushOpened later = Header("a");
  later.round = 0;
  script_.Say(later);  // after the commit too
  EXPECT_TRUE(script_.Last<AnswerPush>()->replayed);
  EXPECT_EQ(script_.Last<AnswerPush>()->outcome, PushOutcome::kAccepted);
}

TEST_F(Pushes, AnotherDeltaUnderTheSameKeyIsAConflict) {
  script_.Push("a", "d");
  PushOpened push = Header("a");
  push.payload_digest = "e";
  ExpectRefused(push, absl::StatusCode::kAlreadyExists, "recorded with digest d, got e", Reason::kConflict);
}

// The caller of the first may still be there, when something between the two sent the push twice: it must not take the
// refusal for the end of its delta.
TEST_F(Pushes, ANewerAttemptTakesOverFromAHangingOne) {
  const PushOpened first = Header("a");
  const PushOpened second = Header("a");
  script_.Say(first);
  script_.Say(second);
  EXPECT_EQ(script_.Last<RefusePush>()->ticket, first.ticket);
  EXPECT_EQ(script_.Last<RefusePush>()->status.code(), absl::StatusCode::kUnavailable);
  script_.Clear();
  script_.Say(PushVerified{first.ticket, absl::OkStatus(), true, ""});  // crossed
  EXPECT_EQ(script_.Last<DropPayload>()->ticket, first.ticket);
  EXPECT_FALSE(script_.Last<AnswerPush>());
  script_.Say(PushVerified{second.ticket, absl::OkStatus(), true, ""});
  EXPECT_EQ(script_.Last<AnswerPush>()->outcome, PushOutcome::kAccepted);
}

TEST_F(Pushes, DamagedBytesAreRefusedAndMayComeAgain) {
  const PushOpened push = Header("a");
  script_.Say(push);
  script_.Say(PushVerified{push.ticket, absl::DataLossError("block 0: checksum"), true, ""});
  EXPECT_EQ(script_.Last<RefusePush>()->status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(script_.Decided(Reason::kChecksum), 1);
  EXPECT_EQ(script_.Last<DropPayload>()->ticket, push.ticket);
  script_.Push("a", "d");
  EXPECT_EQ(script_.Last<AnswerPush>()->outcome, PushOutcome::kAccepted);
}

TEST_F(Pushes, ADeltaThatIsNotFiniteDoesNotCountAndHoldsNobodyUp) {
  const PushOpened push = Header("a");
  script_.Say(push);
  script_.Say(PushVerified{push.ticket, absl::OkStatus(), false, "a.weight[3]"});
  EXPECT_EQ(script_.Last<AnswerPush>()->outcome, PushOutcome::kNonFinite);
  EXPECT_THAT(script_.Last<AnswerPush>()->reason, HasSubstr("a.weight[3]"));
  EXPECT_EQ(script_.Last<DropPayload>()->ticket, push.ticket);
  script_.Push("b");
  ASSERT_TRUE(script_.Last<StartCommit>());
  EXPECT_EQ(script_.Last<StartCommit>()->contributions.size(), 1u);
}

TEST_F(Pushes, LateAndStaleDeltasAreNamedAsSuch) {
  script_.Say(GoodbyeReceived{script_.SessionOf("b"), script_.SenderOf("b"), ""});
  const PushOpened slow = Header("b");
  script_.Push("a");
  ASSERT_TRUE(script_.Last<StartCommit>());
  script_.Clear();
  script_.Say(slow);
  EXPECT_EQ(script_.Last<AnswerPush>()->outcome, PushOutcome::kLate) << "while the round commits";
  script_.Commit();
  script_.Push("a", "second");
  script_.Commit();
  PushOpened stale = Header("b");
  stale.round = 0;
  stale.sender = script_.SenderOf("a");
  stale.sender.worker.name = "b";
  stale.sender.worker.incarnation = slow.sender.worker.incarnation;
  stale.payload_digest = "other";
  script_.Clear();
  script_.Say(stale);
  EXPECT_EQ(script_.Last<RefusePush>()->status.code(), absl::StatusCode::kAlreadyExists) << "its outcome is recorded";
  PushOpened never_seen = Header("a");
  never_seen.round = 0;
  never_seen.sender = script_.SenderOf("a");
  script_.Join("c");
  never_seen.sender = script_.SenderOf("c");
  script_.Clear();
  script_.Say(never_seen);
  EXPECT_EQ(script_.Last<AnswerPush>()->outcome, PushOutcome::kStale);
}

TEST_F(Pushes, ADeltaVerifiedAfterTheCloseIsLate) {
  const PushOpened push = Header("b");
  script_.Say(push);
  script_.Push("a");
  script_.Say(GoodbyeReceived{script_.SessionOf("b"), script_.SenderOf("b"), ""});
  ASSERT_TRUE(script_.Last<StartCommit>());
  script_.Clear();
  script_.Say(PushVerified{push.ticket, absl::OkStatus(), true, ""});
  EXPECT_EQ(script_.Last<AnswerPush>()->outcome, PushOutcome::kLate);
  EXPECT_EQ(script_.Last<DropPayload>()->ticket, push.ticket);
}

TEST_F(Pushes, AnAbortedRoundForgetsWhatWasSaidOfIt) {
  const PushOpened push = Header("a");
  script_.Say(push);
  script_.Say(PushVerified{push.ticket, absl::OkStatus(), false, "a.weight[0]"});
  script_.Say(GoodbyeReceived{script_.SessionOf("b"), script_.SenderOf("b"), ""});
  EXPECT_EQ(script_.Decided(Reason::kAborted), 1);
  // The round is open again for the one worker that is left; its next delta is judged on its own.
  EXPECT_EQ(script_.Status().phase, RunPhase::kTraining);
  script_.Push("a", "another");
  EXPECT_EQ(script_.Last<AnswerPush>()->outcome, PushOutcome::kAccepted);
}

TEST_F(Pushes, ACancelledPushLeavesNothingBehind) {
  const PushOpened push = Header("a");
  script_.Say(push);
  script_.Clear();
  script_.Say(PushCancelled{push.ticket});
  EXPECT_EQ(script_.Last<DropPayload>()->ticket, push.ticket);
  script_.Clear();
  script_.Say(PushCancelled{push.ticket});
  EXPECT_TRUE(script_.effects().empty());
}

TEST_F(Pushes, StatusTellsWhatBecameOfAPush) {
  script_.Say(PushStatusAsked{7, script_.SenderOf("a"), 0, 0});
  EXPECT_FALSE(script_.Last<AnswerPushStatus>()->known);
  script_.Push("a");
  script_.Say(PushStatusAsked{8, script_.SenderOf("a"), 0, 0});
  EXPECT_TRUE(script_.Last<AnswerPushStatus>()->known);
  EXPECT_EQ(script_.Last<AnswerPushStatus>()->outcome, PushOutcome::kAccepted);
  Sender stranger = script_.SenderOf("a");
  stranger.run_id = "run-2";
  script_.Say(PushStatusAsked{9, stranger, 0, 0});
  EXPECT_EQ(script_.Last<AnswerPushStatus>()->status.code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(Pushes, OutcomesAreKeptForABoundedNumberOfRounds) {
  PushRegister reg;
  for (Round round = 0; round < 100; ++round) {
    reg.Record({{"a", 1}, round, 0}, {"d", PushOutcome::kAccepted, ""});
    reg.Trim(round);
  }
  EXPECT_EQ(reg.Find({{"a", 1}, 83, 0}), nullptr);
  EXPECT_NE(reg.Find({{"a", 1}, 84, 0}), nullptr);
  EXPECT_NE(reg.Find({{"a", 1}, 99, 0}), nullptr);
}

}  // namespace
}  // namespace autoloco::server
