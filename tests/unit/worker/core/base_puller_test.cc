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
  EXPECT_EQ(script.Last<StartPull>()->version, std::nullopt);
  EXPECT_FALSE(script.Last<StartPull>()->probe);
  EXPECT_EQ(script.Last<StartPull>()->held_digest, "");
  EXPECT_EQ(script.Last<StartPull>()->identity.incarnation, 1u);
  EXPECT_EQ(script.Count<SendReady>(), 0);
  script.EndPull(13, "d13");
  ASSERT_EQ(script.Count<SendReady>(), 1);
  EXPECT_EQ(script.Last<SendReady>()->version, 13u);
}

TEST(BasePullerTest, PullsTheVersionOfTheRoundWhenItHoldsAnother) {
  MachineScript script;
  script.Join(0);
  script.Assign(IntervalOf(1));
  ASSERT_EQ(script.Last<StartPull>()->version, Version{1});
  EXPECT_EQ(script.Last<StartPull>()->held_digest, "digest");
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
  EXPECT_EQ(script.Last<StartPull>()->held_digest, "");  // what the buffer holds is not known any more
  script.EndPull(1, "d1");
  EXPECT_EQ(script.Count<StartTraining>(), 1);
}

TEST(BasePullerTest, AVersionThatIsGoneDropsItsAssignment) {
  MachineScript script;
  script.Join(0);
  script.Assign(IntervalOf(1));
  script.FailPull(absl::AbortedError("version 1 is gone; current is 2"));
  EXPECT_EQ(script.Noted(NoteKind::kDropped), 1);
  script.RunTimers(absl::Seconds(30));
  EXPECT_EQ(script.Count<StartPull>(), 2);  // waits for the next assignment
  script.Assign(IntervalOf(2));
  EXPECT_EQ(script.Last<StartPull>()->version, Version{2});
}

TEST(BasePullerTest, AJoinerWhoseVersionIsGonePullsTheCurrentOneAgain) {
  MachineScript script;
  script.Welcome(1, 0);
  script.Say(Prepared{});
  script.FailPull(absl::AbortedError("gone"));
  script.RunTimers(absl::Seconds(1));
  ASSERT_EQ(script.Count<StartPull>(), 2);
  EXPECT_EQ(script.Last<StartPull>()->version, std::nullopt);
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
  script.Say(PullEnded{.ticket = old, .status = absl::OkStatus(), .version = 1, .digest = "d1", .differs = false});
  EXPECT_EQ(script.Count<StartTraining>(), 0);
  script.EndPull(2, "d2");
  EXPECT_EQ(script.Last<StartTraining>()->assignment.round, 2u);
}

}  // namespace
}  // namespace autoloco::worker
