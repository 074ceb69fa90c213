// From the end of an interval's training to the answer of its push: encoding, and what is carried to the next delta.
#include <gtest/gtest.h>

#include "tests/support/machine_script.h"

namespace autoloco::worker {
namespace {

TEST(WorkerMachinePushTest, ADeltaThatIsEncodedAfterItsCancellationIsDropped) {
  MachineScript script;
  script.Start(0);
  script.Say(TrainingEnded{.round = 0, .status = absl::OkStatus()});
  ASSERT_EQ(script.Count<StartEncoding>(), 1);
  EXPECT_EQ(script.machine().phase(), WorkerPhase::kPushing);
  script.Assign(IntervalOf(1));
  EXPECT_EQ(script.Count<CancelWork>(), 0);  // it ends by itself
  EXPECT_EQ(script.Count<StartPull>(), 1);
  script.EndEncoding();
  EXPECT_EQ(script.Count<StartPush>(), 0);
  EXPECT_EQ(script.Last<DropDelta>()->round, 0u);
  EXPECT_EQ(script.Count<StartPull>(), 2);
}

TEST(WorkerMachinePushTest, ADeltaThatCannotBeEncodedExits1) {
  MachineScript script;
  script.Start(0);
  script.Say(TrainingEnded{.round = 0, .status = absl::OkStatus()});
  script.Say(DeltaEncoded{
      .round = 0, .status = absl::InvalidArgumentError("it is not finite: tensor a: value 1 is nan"), .digest = ""});
  EXPECT_EQ(script.Count<StartPush>(), 0);
  EXPECT_EQ(script.Last<SendGoodbye>()->reason,
            "the delta of round 0 was not encoded: it is not finite: tensor a: value 1 is nan");
  script.EndSession(absl::OkStatus());
  EXPECT_EQ(script.Last<Finish>()->exit_code, kExitFailed);
}

// ------------------------------------------------------------------------------------------------ what is carried on

// A worker that has sent the delta of round 0 and trains round 1.
MachineScript InRoundOne(PushOutcome outcome) {
  MachineScript script;
  script.Start(0);
  script.EndTraining();
  EXPECT_FALSE(script.Last<StartEncoding>()->previous_counts);  // there is none
  script.AnswerPush(outcome);
  script.CloseRound(0);
  script.Assign(IntervalOf(1));
  script.EndPull(1, "d1");
  return script;
}

TEST(WorkerMachinePushTest, WhatADeltaLeftIsCarriedOnWhereItCounts) {
  for (const PushOutcome outcome : {PushOutcome::kAccepted, PushOutcome::kLate, PushOutcome::kStale,
                                    PushOutcome::kNormOutlier, PushOutcome::kRoundAborted}) {
    MachineScript script = InRoundOne(outcome);
    script.EndTraining();
    EXPECT_EQ(script.Last<StartEncoding>()->assignment, IntervalOf(1));
    EXPECT_EQ(script.Last<StartEncoding>()->identity.incarnation, 1u);
    EXPECT_EQ(script.Last<StartEncoding>()->previous_counts, outcome == PushOutcome::kAccepted);
  }
}

TEST(WorkerMachinePushTest, WhatADeltaLeftIsCarriedOnOnce) {
  MachineScript script = InRoundOne(PushOutcome::kAccepted);
  script.Say(TrainingEnded{.round = 1, .status = absl::OkStatus()});
  EXPECT_TRUE(script.Last<StartEncoding>()->previous_counts);
  Assignment other = IntervalOf(1);  // the round was aborted and opened again
  other.first_sample = 1000;
  script.Assign(other);
  script.EndEncoding();
  script.EndTraining();
  EXPECT_EQ(script.Last<StartEncoding>()->assignment, other);
  EXPECT_FALSE(script.Last<StartEncoding>()->previous_counts);  // that of the interval given up
}

TEST(WorkerMachinePushTest, ADeltaOfARoundThatWasAbortedDoesNotCount) {
  MachineScript script;
  script.Start(0);
  script.EndTraining();
  script.AnswerPush(PushOutcome::kAccepted);
  script.Say(Aborted{.session = script.session(), .round = 0, .reason = "all gone"});
  Assignment again = IntervalOf(0);
  again.first_sample = 1000;
  script.Assign(again);
  script.EndTraining();
  EXPECT_EQ(script.Last<StartEncoding>()->assignment, again);
  EXPECT_FALSE(script.Last<StartEncoding>()->previous_counts);
}

// The interval is whole, strict run or not; only what became of the last delta is still to be learned.
TEST(WorkerMachinePushTest, StopAfterTheIntervalSendsIt) {
  for (const bool encoding : {true, false}) {
    MachineScript script = InRoundOne(PushOutcome::kAccepted);
    script.Say(TrainingEnded{.round = 1, .status = absl::OkStatus()});
    if (!encoding) script.EndEncoding();
    script.Say(StopRequested{.reason = "SIGTERM"});
    EXPECT_EQ(script.Count<SendGoodbye>(), 0);
    if (encoding) script.EndEncoding();
    ASSERT_EQ(script.Count<StartPush>(), 2);
    script.AnswerPush(PushOutcome::kAccepted);
    EXPECT_EQ(script.Count<SendGoodbye>(), 1);
  }
}

TEST(WorkerMachinePushTest, StopWhileTheLastDeltaIsInDoubtAsksForItFirst) {
  MachineScript script;
  script.Start(0);
  script.EndTraining();
  script.FailPush(absl::UnavailableError("connection reset"));
  script.CloseRound(0);
  script.Assign(IntervalOf(1));
  script.EndPull(1, "d1");
  script.EndTraining();
  EXPECT_EQ(script.Count<StartEncoding>(), 1);
  script.Say(StopRequested{.reason = "SIGTERM"});
  script.RunTimers(absl::Seconds(1));
  ASSERT_EQ(script.Count<AskPushStatus>(), 1);
  script.Say(PushStatusEnded{.ticket = script.Last<AskPushStatus>()->ticket,
                             .status = absl::OkStatus(),
                             .known = true,
                             .outcome = PushOutcome::kAccepted,
                             .reason = ""});
  EXPECT_EQ(script.Count<StartEncoding>(), 2);
  script.EndEncoding();
  EXPECT_EQ(script.Last<StartPush>()->round, 1u);
  EXPECT_TRUE(script.Last<StartPush>()->leaving);
}

}  // namespace
}  // namespace autoloco::worker
