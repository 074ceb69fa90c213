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

TEST(BasePullerTest, TheEndOfACancelledPullIsIgnored) {
  MachineScript script;
  script.Join(0);
  script.Assign(IntervalOf(1));
  const Ticket old = script.Last<StartPull>()->ticket;
  script.Assign(IntervalOf(2));
  EXPECT_EQ(script.Last<CancelPull>()->ticket, old);
  script.Say(PullEnded{.ticket = old,
                       .status = absl::OkStatus(),
                       .form = PullForm::kFull,
                       .confirmed = true,
                       .version = 1,
                       .digest = "d1"});
  EXPECT_EQ(script.Count<StartTraining>(), 0);
  script.EndPull(2, "d2");
  EXPECT_EQ(script.Last<StartTraining>()->assignment.round, 2u);
}

}  // namespace
}  // namespace autoloco::worker
