#include "worker/core/push_tracker.h"

#include <gtest/gtest.h>

#include "tests/support/machine_script.h"

namespace autoloco::worker {
namespace {

// A worker whose delta of round 0 is being sent.
class PushTrackerTest : public ::testing::Test {
 protected:
  PushTrackerTest() {
    script_.Start(0);
    script_.EndTraining();
  }
  void AnswerStatus(bool known, PushOutcome outcome = PushOutcome::kAccepted) {
    script_.Say(PushStatusEnded{.ticket = script_.Last<AskPushStatus>()->ticket,
                                .status = absl::OkStatus(),
                                .known = known,
                                .outcome = outcome,
                                .reason = ""});
  }
  MachineScript script_;
};

TEST_F(PushTrackerTest, SendsTheDeltaAndForgetsItWhenAnswered) {
  ASSERT_EQ(script_.Count<StartPush>(), 1);
  EXPECT_EQ(script_.Last<StartPush>()->round, 0u);
  EXPECT_EQ(script_.Last<StartPush>()->identity.incarnation, 1u);
  EXPECT_EQ(script_.machine().phase(), WorkerPhase::kPushing);
  script_.AnswerPush(PushOutcome::kAccepted);
  EXPECT_EQ(script_.Last<DropDelta>()->round, 0u);
  EXPECT_EQ(script_.Count<CancelPush>(), 0);
  EXPECT_EQ(script_.machine().phase(), WorkerPhase::kWaiting);
}

TEST_F(PushTrackerTest, ALostAnswerIsAskedFor) {
  script_.FailPush(absl::UnavailableError("reset"));
  EXPECT_EQ(script_.Count<AskPushStatus>(), 0);
  script_.RunTimers(absl::Seconds(1));
  ASSERT_EQ(script_.Count<AskPushStatus>(), 1);
  EXPECT_EQ(script_.Last<AskPushStatus>()->round, 0u);
  AnswerStatus(true);
  EXPECT_EQ(script_.Count<StartPush>(), 1);
  EXPECT_EQ(script_.Count<DropDelta>(), 1);
  EXPECT_EQ(script_.Noted(NoteKind::kPushAnswered), 1);
}

TEST_F(PushTrackerTest, AnUnknownPushIsSentAgain) {
  script_.FailPush(absl::DeadlineExceededError("stalled"));
  script_.RunTimers(absl::Seconds(1));
  AnswerStatus(false);
  EXPECT_EQ(script_.Count<StartPush>(), 2);
  EXPECT_EQ(script_.Count<DropDelta>(), 0);
  script_.AnswerPush(PushOutcome::kAccepted);
  EXPECT_EQ(script_.Count<DropDelta>(), 1);
}

TEST_F(PushTrackerTest, TheQuestionItselfMayFail) {
  script_.FailPush(absl::UnavailableError("reset"));
  script_.RunTimers(absl::Seconds(1));
  script_.Say(PushStatusEnded{.ticket = script_.Last<AskPushStatus>()->ticket,
                              .status = absl::UnavailableError("still away"),
                              .known = false,
                              .outcome = PushOutcome::kAccepted,
                              .reason = ""});
  script_.RunTimers(absl::Seconds(1));
  EXPECT_EQ(script_.Count<AskPushStatus>(), 2);
}

TEST_F(PushTrackerTest, AFullServerIsAskedLater) {
  script_.FailPush(absl::ResourceExhaustedError("max_push_bytes_in_flight"));
  script_.RunTimers(absl::Seconds(1));
  AnswerStatus(false);
  EXPECT_EQ(script_.Count<StartPush>(), 2);
}

TEST_F(PushTrackerTest, IsNotSentAgainWhenItsRoundHasClosed) {
  script_.FailPush(absl::UnavailableError("reset"));
  script_.CloseRound(0);
  script_.RunTimers(absl::Seconds(1));
  AnswerStatus(false);
  EXPECT_EQ(script_.Count<StartPush>(), 1);
  EXPECT_EQ(script_.Count<DropDelta>(), 1);
  EXPECT_EQ(script_.Noted(NoteKind::kDropped), 1);
}

TEST_F(PushTrackerTest, LateStaleAndAbortedAreLoggedAndTheWorkerGoesOn) {
  for (const PushOutcome outcome :
       {PushOutcome::kLate, PushOutcome::kStale, PushOutcome::kRoundAborted, PushOutcome::kNormOutlier}) {
    MachineScript script;
    script.Start(0);
    script.EndTraining();
    script.AnswerPush(outcome, "because");
    EXPECT_TRUE(script.Last<Note>()->problem);
    EXPECT_EQ(script.Last<Note>()->text, std::string(PushOutcomeName(outcome)) + ": because");
    EXPECT_EQ(script.Count<DropDelta>(), 1);
    EXPECT_FALSE(script.machine().finished());
  }
}

TEST_F(PushTrackerTest, NonFiniteStopsTheWorker) {
  script_.AnswerPush(PushOutcome::kNonFinite, "tensor a");
  ASSERT_EQ(script_.Count<SendGoodbye>(), 1);
  script_.EndSession(absl::OkStatus());
  EXPECT_EQ(script_.Last<Finish>()->exit_code, kExitFailed);
}

TEST_F(PushTrackerTest, ARefusalForTheLayoutStopsTheWorker) {
  script_.FailPush(absl::FailedPreconditionError("layout hash: want 1, got 2"));
  script_.EndSession(absl::OkStatus());
  EXPECT_EQ(script_.Last<Finish>()->exit_code, kExitRefused);
}

TEST_F(PushTrackerTest, AbortedGoesOnWithTheNextAssignment) {
  script_.FailPush(absl::AbortedError("a newer attempt took over"));
  EXPECT_EQ(script_.Count<DropDelta>(), 1);
  script_.RunTimers(absl::Seconds(30));
  EXPECT_EQ(script_.Count<AskPushStatus>(), 0);
  EXPECT_EQ(script_.Count<StartPush>(), 1);
}

TEST_F(PushTrackerTest, TheNextIntervalStartsBeforeTheAnswerArrives) {
  script_.CloseRound(0);
  script_.Assign(IntervalOf(1));
  EXPECT_EQ(script_.Count<StartPull>(), 2);
  EXPECT_EQ(script_.Count<CancelPush>(), 0);
  script_.EndPull(1, "d1");
  EXPECT_EQ(script_.Count<StartTraining>(), 2);
  script_.AnswerPush(PushOutcome::kAccepted);
  EXPECT_EQ(script_.Last<DropDelta>()->round, 0u);
  script_.EndTraining();
  EXPECT_EQ(script_.Last<StartPush>()->round, 1u);
}

TEST_F(PushTrackerTest, ADeltaThatIsNotAnsweredIsAskedForBeforeTheNextOneIsEncoded) {
  for (const bool known : {true, false}) {
    MachineScript script;
    script.Start(0);
    script.EndTraining();
    script.CloseRound(0);
    script.Assign(IntervalOf(1));
    script.EndPull(1, "d1");
    const Ticket old = script.Last<StartPush>()->ticket;
    EXPECT_EQ(script.Count<CancelPush>(), 0);  // the answer may come while the next interval trains
    script.EndTraining();
    EXPECT_EQ(script.Last<CancelPush>()->ticket, old);
    ASSERT_EQ(script.Count<AskPushStatus>(), 1);
    EXPECT_EQ(script.Count<StartEncoding>(), 1);
    EXPECT_EQ(script.machine().phase(), WorkerPhase::kPushing);
    script.Say(PushEnded{.ticket = old, .status = absl::OkStatus(), .outcome = PushOutcome::kNonFinite, .reason = ""});
    EXPECT_EQ(script.Count<SendGoodbye>(), 0);
    script.Say(PushStatusEnded{.ticket = script.Last<AskPushStatus>()->ticket,
                               .status = absl::OkStatus(),
                               .known = known,
                               .outcome = PushOutcome::kAccepted,
                               .reason = ""});
    ASSERT_EQ(script.Count<StartEncoding>(), 2);
    EXPECT_EQ(script.Last<StartEncoding>()->previous_counts, known);
    script.EndEncoding();
    EXPECT_EQ(script.Last<StartPush>()->round, 1u);
  }
}

TEST_F(PushTrackerTest, WhereItsRoundIsOpenForLateDeltasItIsSentToTheEnd) {
  MachineScript script;
  script.Say(Welcomed{.session = script.session(),
                      .identity = {.run_id = "run-1", .incarnation = 1},
                      .version = 0,
                      .heartbeat = absl::Seconds(2),
                      .late_versions_max = 2});
  script.Say(Prepared{});
  script.EndPull(0, "digest");
  script.Assign(IntervalOf(0));
  script.EndTraining();
  script.CloseRound(0);
  script.Assign(IntervalOf(1));
  script.EndPull(1, "d1");
  script.EndTraining();
  EXPECT_EQ(script.Count<CancelPush>(), 0);
  EXPECT_EQ(script.Count<StartEncoding>(), 1);
  script.CloseRound(1);
  script.CloseRound(2);
  EXPECT_EQ(script.Count<CancelPush>(), 1);
}

TEST_F(PushTrackerTest, AnAbortedRoundTakesItsDeltaWithIt) {
  script_.Say(Aborted{.session = script_.session(), .round = 0, .reason = "all gone"});
  EXPECT_EQ(script_.Count<CancelPush>(), 1);
  EXPECT_EQ(script_.Count<DropDelta>(), 1);
}

TEST_F(PushTrackerTest, AnotherIntervalOfTheSameRoundReplacesTheDelta) {
  Assignment other = IntervalOf(0);
  other.first_sample = 1000;
  script_.Assign(other);
  EXPECT_EQ(script_.Count<CancelPush>(), 1);
  EXPECT_EQ(script_.Last<StartTraining>()->assignment, other);
}

TEST_F(PushTrackerTest, PushesOnWhileTheSessionIsBroken) {
  script_.EndSession(absl::UnavailableError("reset"));
  EXPECT_EQ(script_.Count<CancelPush>(), 0);
  script_.AnswerPush(PushOutcome::kAccepted);
  EXPECT_EQ(script_.Count<DropDelta>(), 1);
}

}  // namespace
}  // namespace autoloco::worker
