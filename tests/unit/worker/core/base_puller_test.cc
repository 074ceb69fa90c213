#include "worker/core/base_puller.h"

#include <gtest/gtest.h>

#include "tests/support/machine_script.h"

namespace autoloco::worker {
namespace {

TEST(BasePullerTest, JoinsWithThePullOfTheCurrentVersion) {
  MachineScript script;
  script.Welcome(1, 12);
  EXPECT_EQ(script.Count<Prepare>(), 1);
  EXPECT_EQ(script.Count<StartPull>(), 0);  // the layout is not known yet
  script.Say(Prepared{});
  ASSERT_EQ(script.Count<StartPull>(), 1);
  EXPECT_FALSE(script.Last<StartPull>()->probe);
  EXPECT_EQ(script.Last<StartPull>()->identity.incarnation, 1u);
  EXPECT_EQ(script.Count<SendReady>(), 0);
  script.EndPull(13, "d13");
  ASSERT_EQ(script.Count<SendReady>(), 1);
  EXPECT_EQ(script.Last<SendReady>()->version, 13u);
}

TEST(BasePullerTest, PullsWhenItHoldsAnotherVersionThanTheRounds) {
  MachineScript script;
  script.Join(0);
  script.Assign(IntervalOf(1));
  ASSERT_EQ(script.Count<StartPull>(), 2);
  EXPECT_EQ(script.Count<StartTraining>(), 0);
  script.EndPull(1, "d1");
  EXPECT_EQ(script.Last<StartTraining>()->assignment, IntervalOf(1));
}

TEST(BasePullerTest, AFailedPullIsTriedAgainWithGrowingPauses) {
  MachineScript script;
  script.Join(0);
  script.Assign(IntervalOf(1));
  for (int i = 1; i <= 5; ++i) {
    script.FailPull(absl::DataLossError("block 3: checksum"));
    EXPECT_EQ(script.Count<StartPull>(), i + 1);
    script.RunTimers(absl::Seconds(8));
    EXPECT_EQ(script.Count<StartPull>(), i + 2);
  }
  EXPECT_EQ(script.Noted(NoteKind::kPullFailed), 5);
  script.EndPull(1, "d1");
  EXPECT_EQ(script.Count<StartTraining>(), 1);
}

TEST(BasePullerTest, ALaterVersionThanTheRoundsDropsItsAssignment) {
  MachineScript script;
  script.Join(0);
  script.Assign(IntervalOf(1));
  script.EndPull(2, "d2");
  EXPECT_EQ(script.Noted(NoteKind::kDropped), 1);
  EXPECT_EQ(script.Count<StartTraining>(), 0);
  script.RunTimers(absl::Seconds(30));
  EXPECT_EQ(script.Count<StartPull>(), 2);  // waits for the next assignment
  script.Assign(IntervalOf(2));
  EXPECT_EQ(script.Count<StartPull>(), 2);  // whose version it holds
  EXPECT_EQ(script.Count<StartTraining>(), 1);
}

TEST(BasePullerTest, TheRestOfATransferThatIsGoneIsNotTheEnd) {
  MachineScript script;
  script.Join(0);
  script.Assign(IntervalOf(1));
  script.FailPull(absl::AbortedError("broadcast 1 is gone"));
  EXPECT_EQ(script.Noted(NoteKind::kDropped), 0);
  script.RunTimers(absl::Seconds(1));
  ASSERT_EQ(script.Count<StartPull>(), 3);
  script.EndPull(1, "d1");
  EXPECT_EQ(script.Count<StartTraining>(), 1);
}

// What is read from live parameters is made one version, and checked, by further pulls.
TEST(BasePullerTest, AJoinerPullsUntilWhatItHoldsIsConfirmed) {
  MachineScript script;
  script.Welcome(1, 12);
  script.Say(Prepared{});
  script.EndPull(PullForm::kLive, 12, "");
  EXPECT_EQ(script.Count<StartPull>(), 2);       // at once
  script.EndPull(PullForm::kBroadcast, 13, "");  // still mixed
  EXPECT_EQ(script.Count<StartPull>(), 3);
  EXPECT_EQ(script.Count<SendReady>(), 0);
  script.EndPull(PullForm::kBroadcast, 14, "d14");
  EXPECT_EQ(script.Count<StartPull>(), 3);
  ASSERT_EQ(script.Count<SendReady>(), 1);
  EXPECT_EQ(script.Last<SendReady>()->version, 14u);
  EXPECT_EQ(script.Noted(NoteKind::kPullFailed), 0);
}

TEST(BasePullerTest, AJoinerThatIsBehindTheWelcomeGoesOn) {
  MachineScript script;
  script.Welcome(1, 12);
  script.Say(Prepared{});
  script.EndPull(PullForm::kBroadcast, 11, "d11");  // it held version 10
  EXPECT_EQ(script.Count<SendReady>(), 0);
  script.EndPull(PullForm::kBroadcast, 12, "d12");
  EXPECT_EQ(script.Count<SendReady>(), 1);
  EXPECT_EQ(script.Count<StartPull>(), 2);
}

TEST(BasePullerTest, BroadcastsBringItToTheRoundsVersion) {
  MachineScript script;
  script.Join(0);
  script.Assign(IntervalOf(3));
  for (const Version version : {1u, 2u}) {
    script.EndPull(PullForm::kBroadcast, version, "d");
    EXPECT_EQ(script.Count<StartTraining>(), 0);
  }
  EXPECT_EQ(script.Count<StartPull>(), 4);
  script.EndPull(PullForm::kBroadcast, 3, "d3");
  EXPECT_EQ(script.Last<StartTraining>()->assignment, IntervalOf(3));
}

TEST(BasePullerTest, LiveParametersThatAreNeverConfirmedAreNotPulledWithoutAPause) {
  MachineScript script;
  script.Welcome(1, 12);
  script.Say(Prepared{});
  script.EndPull(PullForm::kLive, 12, "");
  EXPECT_EQ(script.Count<StartPull>(), 2);
  for (int i = 3; i < 8; ++i) {
    script.EndPull(PullForm::kLive, 12, "");
    EXPECT_EQ(script.Count<StartPull>(), i - 1);
    script.RunTimers(absl::Seconds(10));
    EXPECT_EQ(script.Count<StartPull>(), i);
  }
  script.EndPull(PullForm::kNothing, 12, "d12");
  EXPECT_EQ(script.Count<SendReady>(), 1);
}

TEST(BasePullerTest, AServerThatIsBehindWhatItAssignsIsNotAskedWithoutAPause) {
  MachineScript script;
  script.Join(0);
  script.Assign(IntervalOf(1));
  script.EndPull(PullForm::kNothing, 0, "digest");
  EXPECT_EQ(script.Count<StartPull>(), 2);
  script.RunTimers(absl::Seconds(1));
  EXPECT_EQ(script.Count<StartPull>(), 3);
  EXPECT_EQ(script.Count<StartTraining>(), 0);
}

TEST(BasePullerTest, ARefusedPullStopsTheWorker) {
  MachineScript script;
  script.Join(0);
  script.Assign(IntervalOf(1));
  script.FailPull(absl::InvalidArgumentError("version 1 does not exist yet"));
  EXPECT_EQ(script.Last<SendGoodbye>()->reason, "version 1 does not exist yet");
  script.EndSession(absl::OkStatus());
  EXPECT_EQ(script.Last<Finish>()->exit_code, kExitRefused);
}

// A download that takes longer than a round is not begun again with every round.
TEST(BasePullerTest, APullGoesOnWhenItsRoundCloses) {
  MachineScript script;
  script.Join(0);
  script.Assign(IntervalOf(1));
  script.CloseRound(1);
  EXPECT_EQ(script.Noted(NoteKind::kDropped), 1);
  EXPECT_EQ(script.Count<CancelPull>(), 0);
  script.Assign(IntervalOf(2));
  EXPECT_EQ(script.Count<StartPull>(), 2);
  EXPECT_EQ(script.machine().phase(), WorkerPhase::kPulling);
  script.EndPull(PullForm::kBroadcast, 1, "d1");
  EXPECT_EQ(script.Count<StartPull>(), 3);
  EXPECT_EQ(script.Count<StartTraining>(), 0);
  script.EndPull(PullForm::kBroadcast, 2, "d2");
  EXPECT_EQ(script.Last<StartTraining>()->assignment, IntervalOf(2));
}

TEST(BasePullerTest, AWorkerWithoutWorkFollowsByBroadcasts) {
  for (const bool lossless : {true, false}) {
    MachineScript script;
    script.Welcome(1, 0);
    script.Say(Prepared{});
    if (!lossless) script.EndPull(PullForm::kLive, 0, "");
    script.EndPull(lossless ? PullForm::kFull : PullForm::kNothing, 0, "d0");
    EXPECT_EQ(script.Count<SendReady>(), 1);
    const int joined = script.Count<StartPull>();
    script.CloseRound(0);
    EXPECT_EQ(script.Count<StartPull>(), joined + (lossless ? 0 : 1));  // whole versions only when one is needed
    if (lossless) continue;
    script.EndPull(PullForm::kBroadcast, 1, "d1");
    script.RunTimers(absl::Seconds(5));
    EXPECT_EQ(script.Count<StartPull>(), joined + 1);
    script.Assign(IntervalOf(1));
    EXPECT_EQ(script.Count<StartTraining>(), 1);
    EXPECT_EQ(script.Count<StartPull>(), joined + 1);
    script.CloseRound(1);  // nothing is written while the engine works on the base
    EXPECT_EQ(script.Count<StartPull>(), joined + 1);
  }
}

// A session that breaks before the first work, while the base is on its way to the next version.
TEST(BasePullerTest, ReadyWaitsForWhatIsHeld) {
  MachineScript script;
  script.Welcome(1, 0);
  script.Say(Prepared{});
  script.EndPull(PullForm::kLive, 0, "");
  script.EndPull(PullForm::kNothing, 0, "d0");
  script.CloseRound(0);
  script.EndSession(absl::UnavailableError("reset"));
  script.RunTimers(absl::Seconds(1));
  script.Welcome(1, 1);
  EXPECT_EQ(script.Count<SendReady>(), 1);
  script.EndPull(PullForm::kBroadcast, 1, "d1");
  ASSERT_EQ(script.Count<SendReady>(), 2);
  EXPECT_EQ(script.Last<SendReady>()->version, 1u);
}

TEST(BasePullerTest, TheEndOfACancelledPullIsIgnored) {
  MachineScript script;
  script.Join(0);
  script.Assign(IntervalOf(1));
  const Ticket old = script.Last<StartPull>()->ticket;
  script.EndSession(absl::FailedPreconditionError("incarnation expired: w#1"));
  EXPECT_EQ(script.Last<CancelPull>()->ticket, old);
  script.RunTimers(absl::Seconds(1));
  script.Welcome(2, 2);
  script.Say(PullEnded{.ticket = old,
                       .status = absl::OkStatus(),
                       .form = PullForm::kFull,
                       .confirmed = true,
                       .version = 1,
                       .digest = "d1"});
  EXPECT_EQ(script.Count<SendReady>(), 1);
  script.EndPull(2, "d2");
  EXPECT_EQ(script.Count<SendReady>(), 2);
}

}  // namespace
}  // namespace autoloco::worker
