// Deltas of an earlier life, and the server's absence.
#include <gtest/gtest.h>

#include "tests/support/machine_script.h"

namespace autoloco::worker {
namespace {

const absl::Status kBroken = absl::UnavailableError("connection reset");
const absl::Status kExpired = absl::FailedPreconditionError("incarnation expired: w#1; join anew");

HeldDelta Saved() {
  return {.owner = {.run_id = "run-1", .incarnation = 7}, .assignment = IntervalOf(3), .digest = "kept"};
}

// A worker that was started again with the delta of round 3, trained as incarnation 7, on its disk.
MachineScript Restarted() {
  MachineConfig config;
  config.saved = Saved();
  return MachineScript(config);
}

TEST(SavedDeltaTest, IsNamedAndSentUnderItsOwnKeyBeforeReady) {
  MachineScript script = Restarted();
  EXPECT_EQ(script.Last<OpenSession>()->identity.incarnation, 0u);
  EXPECT_EQ(script.Last<OpenSession>()->held, Saved());
  EXPECT_EQ(script.Count<StartPush>(), 0);
  script.WelcomeHeld(8, 3, true);
  ASSERT_EQ(script.Count<StartPush>(), 1);
  EXPECT_EQ(script.Last<StartPush>()->identity, Saved().owner);
  EXPECT_EQ(script.Last<StartPush>()->round, 3u);
  EXPECT_FALSE(script.Last<StartPush>()->leaving);
  script.Say(Prepared{});  // it builds its model and pulls meanwhile
  script.EndPull(3, "d3");
  EXPECT_EQ(script.Count<SendReady>(), 0);
  script.AnswerPush(PushOutcome::kAccepted);
  ASSERT_EQ(script.Count<SendReady>(), 1);
  EXPECT_EQ(script.Last<SendReady>()->identity.incarnation, 8u);
  script.Assign(IntervalOf(4));
  script.EndPull(4, "d4");
  script.EndTraining();
  EXPECT_TRUE(script.Last<StartEncoding>()->previous_counts);
}

TEST(SavedDeltaTest, OneThatTheServerDoesNotWantIsDroppedWithANote) {
  MachineScript script = Restarted();
  script.WelcomeHeld(8, 5, false, "round 3 has closed");
  EXPECT_EQ(script.Count<StartPush>(), 0);
  EXPECT_EQ(script.Last<DropDelta>()->round, 3u);
  ASSERT_EQ(script.Noted(NoteKind::kDropped), 1);
  bool told = false;
  for (const Note& note : script.All<Note>()) told |= note.text.find("round 3 has closed") != std::string::npos;
  EXPECT_TRUE(told);
  script.Say(Prepared{});
  script.EndPull(5, "d5");
  EXPECT_EQ(script.Count<SendReady>(), 1);
  script.Assign(IntervalOf(5));
  script.EndTraining();
  EXPECT_FALSE(script.Last<StartEncoding>()->previous_counts);
}

TEST(SavedDeltaTest, OneThatArrivedIsKnownToCount) {
  MachineScript script = Restarted();
  script.Say(Welcomed{.session = script.session(),
                      .identity = {.run_id = "run-1", .incarnation = 8},
                      .version = 4,
                      .heartbeat = absl::Seconds(2),
                      .held_reason = "it is recorded as accepted",
                      .held_outcome = PushOutcome::kAccepted});
  EXPECT_EQ(script.Noted(NoteKind::kPushAnswered), 1);
  EXPECT_EQ(script.Noted(NoteKind::kDropped), 0);
  EXPECT_EQ(script.Count<StartPush>(), 0);
  EXPECT_EQ(script.Count<DropDelta>(), 1);
  script.Say(Prepared{});
  script.EndPull(4, "d4");
  script.Assign(IntervalOf(4));
  script.EndTraining();
  EXPECT_TRUE(script.Last<StartEncoding>()->previous_counts);
}

TEST(SavedDeltaTest, ALostAnswerIsAskedForUnderItsOwnKey) {
  MachineScript script = Restarted();
  script.WelcomeHeld(8, 3, true);
  script.FailPush(kBroken);
  script.RunTimers(absl::Seconds(1));
  EXPECT_EQ(script.Last<AskPushStatus>()->identity, Saved().owner);
}

TEST(SavedDeltaTest, ARefusalCostsTheDeltaAndNotTheWorker) {
  for (const absl::Status& status :
       {absl::FailedPreconditionError("incarnation replaced: w is now incarnation 8"), kExpired,
        absl::InvalidArgumentError("codec"), absl::FailedPreconditionError("layout hash: want 1, got 2"),
        absl::AlreadyExistsError("recorded with another digest")}) {
    MachineScript script = Restarted();
    script.WelcomeHeld(8, 3, true);
    script.Say(Prepared{});
    script.EndPull(3, "d3");
    script.FailPush(status);
    if (status.code() == absl::StatusCode::kAlreadyExists) continue;  // judged as any other error of the network
    EXPECT_EQ(script.Count<DropDelta>(), 1) << status;
    EXPECT_EQ(script.Count<SendReady>(), 1) << status;
    EXPECT_EQ(script.Count<SendGoodbye>() + script.Count<CloseSession>(), 0) << status;
  }
}

TEST(SavedDeltaTest, IsNamedAgainWhenTheSessionBreaksInBetween) {
  MachineScript script = Restarted();
  script.EndSession(kBroken);
  script.RunTimers(absl::Seconds(1));
  EXPECT_EQ(script.Last<OpenSession>()->held, Saved());
  script.WelcomeHeld(8, 3, true);
  ASSERT_EQ(script.Count<StartPush>(), 1);
  script.EndSession(kBroken);
  script.RunTimers(absl::Seconds(1));
  EXPECT_EQ(script.Last<OpenSession>()->identity.incarnation, 8u);
  EXPECT_EQ(script.Last<OpenSession>()->held, Saved());  // the server may have forgotten that it waits for it
  script.WelcomeHeld(8, 3, true);
  EXPECT_EQ(script.Count<StartPush>(), 1);  // still under way
  EXPECT_EQ(script.Count<DropDelta>(), 0);
}

TEST(SavedDeltaTest, ADeltaOfThisIncarnationIsNotNamed) {
  MachineScript script;
  script.Start(0);
  script.EndTraining();
  script.EndSession(kBroken);
  script.RunTimers(absl::Seconds(1));
  EXPECT_EQ(script.Last<OpenSession>()->held, std::nullopt);
  script.WelcomeHeld(1, 0, false);
  EXPECT_EQ(script.Count<DropDelta>(), 0);
}

TEST(SavedDeltaTest, AWorkerWhoseLeaseRanOutOffersWhatItHas) {
  for (const bool wanted : {true, false}) {
    MachineScript script;
    script.Start(0);
    script.EndTraining();
    script.EndSession(kExpired);
    EXPECT_EQ(script.Count<CancelPush>(), 1);
    script.RunTimers(absl::Seconds(1));
    const std::optional<HeldDelta> held = script.Last<OpenSession>()->held;
    ASSERT_TRUE(held.has_value());
    EXPECT_EQ(held->owner, (Identity{.run_id = "run-1", .incarnation = 1}));
    EXPECT_EQ(held->digest, "payload");
    script.WelcomeHeld(2, 0, wanted);
    EXPECT_EQ(script.Count<StartPush>(), wanted ? 2 : 1);
    EXPECT_EQ(script.Last<StartPush>()->identity.incarnation, 1u);
    EXPECT_EQ(script.Count<DropDelta>(), wanted ? 0 : 1);
  }
}

// ------------------------------------------------------------------------------------------------ absence

TEST(ServerAbsenceTest, TheIntervalIsFinishedAndTheDeltaKept) {
  MachineScript script;
  script.Start(0);
  script.EndSession(kBroken);
  script.EndTraining();
  EXPECT_EQ(script.Count<CancelWork>(), 0);
  for (int i = 0; i < 20; ++i) {
    if (script.Count<StartPush>() + script.Count<AskPushStatus>() > 0) script.FailPush(kBroken);
    script.EndSession(kBroken);
    script.RunTimers(absl::Seconds(10));
  }
  EXPECT_EQ(script.Count<DropDelta>(), 0);
  EXPECT_EQ(script.machine().phase(), WorkerPhase::kPushing);
}

TEST(ServerAbsenceTest, AttemptsAreNeverFurtherApartThanTheCap) {
  MachineScript script;
  script.Start(0);
  script.EndSession(kBroken);
  for (int i = 0; i < 40; ++i) {
    const int before = script.Count<OpenSession>();
    script.RunTimers(absl::Seconds(10));
    ASSERT_EQ(script.Count<OpenSession>(), before + 1);  // each one fails at once
    script.EndSession(kBroken);
  }
}

TEST(ServerAbsenceTest, WhatWaitedForTheServerGoesOnWithTheWelcome) {
  MachineScript script;
  script.Start(0);
  script.EndTraining();
  for (int i = 0; i < 8; ++i) {  // the pauses have grown
    script.FailPush(kBroken);
    script.RunTimers(absl::Seconds(10));
    const auto asked = script.Last<AskPushStatus>();
    ASSERT_TRUE(asked.has_value());
    script.Say(PushStatusEnded{
        .ticket = asked->ticket, .status = kBroken, .known = false, .outcome = PushOutcome::kAccepted, .reason = ""});
  }
  script.EndSession(kBroken);
  script.RunTimers(absl::Milliseconds(200));
  const int before = script.Count<AskPushStatus>();
  script.Welcome(1, 0);
  EXPECT_EQ(script.Count<AskPushStatus>(), before + 1);
}

TEST(ServerAbsenceTest, APullThatWaitedGoesOnWithTheWelcome) {
  MachineScript script;
  script.Start(0);
  script.Assign(IntervalOf(1));
  script.EndWork(absl::CancelledError(""));
  for (int i = 0; i < 8; ++i) {
    script.FailPull(kBroken);
    if (i < 7) script.RunTimers(absl::Seconds(10));
  }
  script.EndSession(kBroken);
  script.RunTimers(absl::Milliseconds(200));
  const int before = script.Count<StartPull>();
  script.Welcome(1, 1);
  EXPECT_EQ(script.Count<StartPull>(), before + 1);
  EXPECT_EQ(script.Count<StartTraining>(), 1);  // nothing was trained on what did not arrive
}

}  // namespace
}  // namespace autoloco::worker
