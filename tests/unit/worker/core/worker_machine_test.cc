#include "worker/core/worker_machine.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/support/machine_script.h"

namespace autoloco::worker {
namespace {

const absl::Status kBroken = absl::UnavailableError("connection reset");
const absl::Status kExpired = absl::FailedPreconditionError("incarnation expired: w#1; join anew");

// ------------------------------------------------------------------------------------------------ a plain run

TEST(WorkerMachineTest, OneRoundAfterAnother) {
  MachineScript script;
  script.Start(0, 2);
  EXPECT_EQ(script.Last<StartEvaluation>()->assignment, IntervalOf(0, 2));
  EXPECT_EQ(script.machine().phase(), WorkerPhase::kEvaluating);
  script.Clear();
  script.EndEvaluation();
  ASSERT_EQ(script.Count<SendProgress>(), 1);  // at once, not with the next heartbeat
  EXPECT_EQ(script.Last<SendProgress>()->evaluation, (EvaluationPart{.version = 0, .loss_sum = 12.5, .tokens = 5}));
  ASSERT_EQ(script.Count<StartTraining>(), 1);
  script.RunTimers(absl::Seconds(4));
  EXPECT_EQ(script.Last<SendProgress>()->evaluation, std::nullopt);  // once
  script.EndTraining();
  script.AnswerPush(PushOutcome::kAccepted);
  script.CloseRound(0);
  EXPECT_EQ(script.machine().phase(), WorkerPhase::kWaiting);
  script.Assign(IntervalOf(1));
  script.EndPull(1, "d1");
  EXPECT_EQ(script.Last<StartTraining>()->assignment.round, 1u);
}

TEST(WorkerMachineTest, WithoutInnerStepsItEvaluatesOnly) {
  MachineScript script;
  script.Join(0);
  Assignment last = IntervalOf(0, 1);
  last.inner_steps = 0;
  script.Assign(last);
  script.EndEvaluation();
  EXPECT_EQ(script.Count<StartTraining>(), 0);
  EXPECT_EQ(script.machine().phase(), WorkerPhase::kWaiting);
  script.Assign(last);  // repeated by the server
  EXPECT_EQ(script.Count<StartEvaluation>(), 1);
}

TEST(WorkerMachineTest, AnAssignmentInWorkIsNotStartedTwice) {
  MachineScript script;
  script.Start(0);
  script.Assign(IntervalOf(0));
  script.EndTraining();
  script.Assign(IntervalOf(0));  // being pushed
  script.AnswerPush(PushOutcome::kAccepted);
  script.Assign(IntervalOf(0));  // delivered
  EXPECT_EQ(script.Count<StartTraining>(), 1);
  EXPECT_EQ(script.Count<StartPush>(), 1);
  EXPECT_EQ(script.Count<CancelWork>(), 0);
}

TEST(WorkerMachineTest, AnotherAssignmentReplacesTheOneInWork) {
  MachineScript script;
  script.Start(0);
  script.Assign(IntervalOf(1));
  ASSERT_EQ(script.Count<CancelWork>(), 1);
  EXPECT_EQ(script.Count<StartPull>(), 1);  // the base is in use until the engine has stopped
  script.EndWork(absl::CancelledError(""));
  EXPECT_EQ(script.Count<StartPull>(), 2);
  script.EndPull(1, "d1");
  EXPECT_EQ(script.Last<StartTraining>()->assignment.round, 1u);
}

TEST(WorkerMachineTest, AnIntervalThatEndedJustBeforeItsCancellationIsNotEncoded) {
  MachineScript script;
  script.Start(0);
  script.Assign(IntervalOf(1));
  script.EndTraining();
  EXPECT_EQ(script.Count<StartEncoding>(), 0);
  EXPECT_EQ(script.Count<StartPull>(), 2);
}

TEST(WorkerMachineTest, ARoundThatClosesWithoutThisWorkerEndsItsInterval) {
  MachineScript script;
  script.Start(0);
  script.CloseRound(0);
  EXPECT_EQ(script.Count<CancelWork>(), 1);
  EXPECT_EQ(script.Noted(NoteKind::kDropped), 1);
  script.EndWork(absl::CancelledError(""));
  script.Assign(IntervalOf(1));
  EXPECT_EQ(script.Count<StartPull>(), 2);
}

TEST(WorkerMachineTest, AbortCancelsAndTheSameRoundMayComeAgain) {
  MachineScript script;
  script.Start(0);
  script.Say(Aborted{.session = script.session(), .round = 0, .reason = "all gone"});
  ASSERT_EQ(script.Count<CancelWork>(), 1);
  script.Assign(IntervalOf(0));  // before the engine has stopped
  EXPECT_EQ(script.Count<StartTraining>(), 1);
  script.EndWork(absl::CancelledError(""));
  EXPECT_EQ(script.Count<StartTraining>(), 2);
}

TEST(WorkerMachineTest, AbortOfAnotherRoundIsIgnored) {
  MachineScript script;
  script.Start(3);
  script.Say(Aborted{.session = script.session(), .round = 2, .reason = ""});
  EXPECT_EQ(script.Count<CancelWork>(), 0);
}

// ------------------------------------------------------------------------------------------------ failures

TEST(WorkerMachineTest, PreparationThatFailsForTheConfigurationExits2) {
  MachineScript script;
  script.Welcome(1, 0);
  script.Say(Prepared{.status = absl::NotFoundError("no such file: /data")});
  EXPECT_EQ(script.Last<SendGoodbye>()->reason, "no such file: /data");
  script.EndSession(absl::OkStatus());
  EXPECT_EQ(script.Last<Finish>()->exit_code, kExitRefused);
}

TEST(WorkerMachineTest, PreparationThatFailsOtherwiseExits1) {
  MachineScript script;
  script.Welcome(1, 0);
  script.Say(Prepared{.status = absl::ResourceExhaustedError("no memory")});
  script.EndSession(absl::OkStatus());
  EXPECT_EQ(script.Last<Finish>()->exit_code, kExitFailed);
}

TEST(WorkerMachineTest, AnEngineThatFailsExits1) {
  for (const std::uint32_t parts : {0u, 1u}) {
    MachineScript script;
    script.Start(0, parts);
    script.EndWork(absl::InternalError("engine"));
    script.EndSession(absl::OkStatus());
    EXPECT_EQ(script.Last<Finish>()->exit_code, kExitFailed);
  }
}

TEST(WorkerMachineTest, ARefusalExits2WithTheServersMessage) {
  for (const absl::Status& status : {absl::FailedPreconditionError("protocol version: the server speaks 2"),
                                     absl::FailedPreconditionError("incarnation replaced: w is used twice"),
                                     absl::InvalidArgumentError("worker name")}) {
    MachineScript script;
    script.EndSession(status);
    ASSERT_TRUE(script.machine().finished());
    EXPECT_EQ(script.Last<Finish>()->exit_code, kExitRefused);
    EXPECT_EQ(script.Last<Finish>()->reason, status.message());
  }
}

TEST(WorkerMachineTest, ARefusalWhileTrainingWaitsForTheEngineNoLongerThanTheGrace) {
  MachineScript script;
  script.Start(0);
  script.EndSession(absl::FailedPreconditionError("incarnation replaced: w"));
  EXPECT_FALSE(script.machine().finished());
  script.RunTimers(absl::Seconds(7));
  EXPECT_FALSE(script.machine().finished());
  script.RunTimers(absl::Seconds(1));
  EXPECT_TRUE(script.machine().finished());
}

// ------------------------------------------------------------------------------------------------ reconnecting

TEST(WorkerMachineTest, ABrokenSessionDoesNotStopTheTraining) {
  MachineScript script;
  script.Start(0);
  script.EndSession(kBroken);
  EXPECT_EQ(script.Count<CancelWork>(), 0);
  script.RunTimers(absl::Seconds(1));
  EXPECT_EQ(script.Last<OpenSession>()->identity, (Identity{.run_id = "run-1", .incarnation = 1}));
  script.Welcome(1, 0);
  script.Assign(IntervalOf(0));  // the server still wants it
  EXPECT_EQ(script.Noted(NoteKind::kReconnected), 1);
  EXPECT_EQ(script.Count<StartTraining>(), 1);
  EXPECT_EQ(script.Count<SendReady>(), 1);  // it knows already
  script.EndTraining();
  EXPECT_EQ(script.Count<StartPush>(), 1);
}

TEST(WorkerMachineTest, ReadyIsRepeatedUntilTheServerHasGivenWork) {
  MachineScript script;
  script.Join(0);
  script.EndSession(kBroken);
  script.RunTimers(absl::Seconds(1));
  script.Welcome(1, 0);
  EXPECT_EQ(script.Count<SendReady>(), 2);
  EXPECT_EQ(script.Count<StartPull>(), 1);
}

TEST(WorkerMachineTest, AnEvaluationThatMayBeLostIsReportedAgain) {
  MachineScript script;
  script.Start(0, 1);
  script.EndSession(kBroken);
  script.EndEvaluation();
  script.RunTimers(absl::Seconds(1));
  script.Clear();
  script.Welcome(1, 0);
  ASSERT_GE(script.Count<SendProgress>(), 1);
  EXPECT_TRUE(script.All<SendProgress>()[0].evaluation.has_value());
}

TEST(WorkerMachineTest, ARoundThatClosedMeanwhileEndsItsInterval) {
  MachineScript script;
  script.Start(0);
  script.EndSession(kBroken);
  script.RunTimers(absl::Seconds(1));
  script.Welcome(1, 1);
  EXPECT_EQ(script.Count<CancelWork>(), 1);
}

TEST(WorkerMachineTest, AServerThatShutsDownIsWaitedFor) {
  MachineScript script;
  script.Start(0);
  script.Say(Drained{.session = script.session(), .run_done = false, .reason = "SIGTERM"});
  script.EndSession(absl::UnavailableError("shutting down"));
  EXPECT_EQ(script.Count<CancelWork>(), 0);
  script.RunTimers(absl::Seconds(1));
  EXPECT_EQ(script.Count<OpenSession>(), 2);
}

// ------------------------------------------------------------------------------------------------ joining anew

TEST(WorkerMachineTest, AnExpiredLeaseJoinsAnewInTheSameRun) {
  MachineScript script;
  script.Join(0);
  script.EndSession(kExpired);
  script.RunTimers(absl::Seconds(1));
  EXPECT_EQ(script.Last<OpenSession>()->identity, (Identity{.run_id = "run-1", .incarnation = 0}));
  script.Welcome(2, 5);
  EXPECT_EQ(script.Count<Prepare>(), 1);  // the trainer is kept
  EXPECT_EQ(script.Last<StartPull>()->identity.incarnation, 2u);
  script.EndPull(5, "d5");
  EXPECT_EQ(script.Last<SendReady>()->identity.incarnation, 2u);
  EXPECT_EQ(script.Last<SendReady>()->version, 5u);
}

// A worker training round 0 that had to join anew as incarnation 2; the round is still open.
MachineScript Rejoined() {
  MachineScript script;
  script.Start(0);
  script.EndSession(kExpired);
  script.RunTimers(absl::Seconds(1));
  script.Welcome(2, 0);
  return script;
}

TEST(WorkerMachineTest, AnIntervalInWorkIsKeptWhenItIsAssignedAgain) {
  MachineScript script = Rejoined();
  EXPECT_EQ(script.Count<CancelWork>(), 0);
  EXPECT_TRUE(script.Last<StartPull>()->probe);  // the base is in use
  script.EndProbe(true, 0, "digest");
  EXPECT_EQ(script.Last<SendReady>()->identity.incarnation, 2u);
  script.Assign(IntervalOf(0));
  script.EndTraining();
  EXPECT_EQ(script.Count<StartTraining>(), 1);
  EXPECT_EQ(script.Last<StartPush>()->identity.incarnation, 2u);
}

TEST(WorkerMachineTest, ADeltaOfTheOldIncarnationWaitsForItsAssignment) {
  MachineScript script = Rejoined();
  script.EndProbe(true, 0, "digest");
  script.EndTraining();
  EXPECT_EQ(script.Count<StartPush>(), 0);
  script.Assign(IntervalOf(0));
  ASSERT_EQ(script.Count<StartPush>(), 1);
  EXPECT_EQ(script.Last<StartPush>()->identity.incarnation, 2u);
}

// The server lost versions and made them again from other deltas: the same round, the same assignment, another base.
TEST(WorkerMachineTest, ADeltaFromOtherParametersThanTheServersIsDropped) {
  for (const bool same_base : {true, false}) {
    MachineScript script;
    script.Start(0);
    script.EndSession(kExpired);
    script.RunTimers(absl::Seconds(1));
    script.EndTraining();  // after the Hello, which therefore could not name it
    script.Welcome(2, 0);
    EXPECT_EQ(script.Count<StartPush>(), 0);
    script.EndPull(0, same_base ? "digest" : "other");
    EXPECT_EQ(script.Count<DropDelta>(), same_base ? 0 : 1);
    script.Assign(IntervalOf(0));
    EXPECT_EQ(script.Count<StartPush>(), same_base ? 1 : 0);
    EXPECT_EQ(script.Count<StartTraining>(), same_base ? 1 : 2);
  }
}

TEST(WorkerMachineTest, ADeltaOfTheOldIncarnationThatIsNotAskedForIsDropped) {
  MachineScript script = Rejoined();
  script.EndProbe(true, 0, "digest");
  script.EndTraining();
  script.CloseRound(0);
  script.Assign(IntervalOf(1));
  EXPECT_EQ(script.Count<StartPush>(), 0);
  EXPECT_EQ(script.Count<DropDelta>(), 1);
}

TEST(WorkerMachineTest, AnotherIntervalReplacesTheOneOfTheOldIncarnation) {
  MachineScript script = Rejoined();
  script.EndProbe(true, 0, "digest");
  Assignment other = IntervalOf(0);
  other.first_sample = 400;
  script.Assign(other);
  EXPECT_EQ(script.Count<CancelWork>(), 1);
  script.EndWork(absl::CancelledError(""));
  EXPECT_EQ(script.Last<StartTraining>()->assignment, other);
}

TEST(WorkerMachineTest, OtherParametersUnderTheSameVersionEndTheInterval) {
  MachineScript script = Rejoined();
  script.EndProbe(false, 0, "");
  EXPECT_EQ(script.Count<CancelWork>(), 1);
  EXPECT_EQ(script.Count<SendReady>(), 1);
  script.EndWork(absl::CancelledError(""));
  EXPECT_FALSE(script.Last<StartPull>()->probe);
  script.EndPull(0, "other");
  EXPECT_EQ(script.Count<SendReady>(), 2);
}

// The probe was answered when the interval it was about had ended: its delta goes with it.
TEST(WorkerMachineTest, OtherParametersUnderTheSameVersionDropTheDeltaThatWaits) {
  MachineScript script = Rejoined();
  script.EndTraining();
  script.EndProbe(false, 0, "");
  EXPECT_EQ(script.Count<DropDelta>(), 1);
  EXPECT_FALSE(script.Last<StartPull>()->probe);
  script.EndPull(0, "other");
  script.Assign(IntervalOf(0));
  EXPECT_EQ(script.Count<StartPush>(), 0);
  EXPECT_EQ(script.Count<StartTraining>(), 2);
}

TEST(WorkerMachineTest, ARoundThatMovedOnEndsTheIntervalOfTheOldIncarnation) {
  MachineScript script;
  script.Start(0);
  script.EndSession(kExpired);
  script.RunTimers(absl::Seconds(1));
  script.Welcome(2, 1);
  EXPECT_EQ(script.Count<CancelWork>(), 1);
  EXPECT_EQ(script.Count<StartPull>(), 1);  // not before the engine has stopped
  script.EndWork(absl::CancelledError(""));
  EXPECT_FALSE(script.Last<StartPull>()->probe);
}

TEST(WorkerMachineTest, APushThatFindsTheLeaseExpiredJoinsAnew) {
  MachineScript script;
  script.Start(0);
  script.EndTraining();
  script.FailPush(kExpired);
  EXPECT_EQ(script.Last<CloseSession>()->session, script.session());
  EXPECT_EQ(script.Count<DropDelta>(), 0);
  script.Clear();
  script.RunTimers(absl::Seconds(1));
  EXPECT_EQ(script.Count<SendProgress>(), 0);  // nothing is said as nobody
  script.EndSession(absl::CancelledError(""));
  script.RunTimers(absl::Seconds(1));
  EXPECT_EQ(script.Last<OpenSession>()->identity.incarnation, 0u);
  ASSERT_TRUE(script.Last<OpenSession>()->held.has_value());
  EXPECT_EQ(script.Last<OpenSession>()->held->owner.incarnation, 1u);
  script.WelcomeHeld(2, 0, true);
  EXPECT_EQ(script.Last<StartPush>()->identity.incarnation, 1u);  // under the key that it was trained under
  script.AnswerPush(PushOutcome::kAccepted);
  EXPECT_EQ(script.Count<DropDelta>(), 1);
}

TEST(WorkerMachineTest, APullThatFindsTheLeaseExpiredJoinsAnew) {
  MachineScript script;
  script.Join(0);
  script.Assign(IntervalOf(1));
  script.FailPull(kExpired);
  EXPECT_EQ(script.Count<CloseSession>(), 1);
  script.EndSession(absl::CancelledError(""));
  script.RunTimers(absl::Seconds(1));
  EXPECT_EQ(script.Last<OpenSession>()->identity.incarnation, 0u);
}

// ------------------------------------------------------------------------------------------------ leaving

TEST(WorkerMachineTest, ARunThatIsDoneExits0) {
  MachineScript script;
  script.Join(0);
  script.Say(Drained{.session = script.session(), .run_done = true, .reason = "the run is complete"});
  ASSERT_EQ(script.Count<SendGoodbye>(), 1);
  EXPECT_FALSE(script.machine().finished());
  script.EndSession(absl::OkStatus());
  EXPECT_EQ(script.Last<Finish>()->exit_code, kExitDone);
}

TEST(WorkerMachineTest, StopInTheIntervalSendsWhatThereIs) {
  MachineScript script;
  script.Start(0);
  script.Say(StopRequested{.reason = "stopped by SIGTERM"});
  EXPECT_EQ(script.Count<CancelWork>(), 0);
  EXPECT_EQ(script.Last<EndTrainingEarly>()->steps_min, 1u);  // a twentieth of 10, rounded up
  EXPECT_EQ(script.Count<SendGoodbye>(), 0);
  script.EndTraining();
  ASSERT_EQ(script.Count<StartPush>(), 1);
  EXPECT_TRUE(script.Last<StartPush>()->leaving);
  EXPECT_EQ(script.Count<SendGoodbye>(), 0);
  script.AnswerPush(PushOutcome::kAccepted);
  EXPECT_EQ(script.Last<SendGoodbye>()->reason, "stopped by SIGTERM");
  script.EndSession(absl::OkStatus());
  EXPECT_EQ(script.Last<Finish>()->exit_code, kExitDone);
}

TEST(WorkerMachineTest, ATwentiethOfTheIntervalIsWorthSending) {
  for (const auto& [steps, least] : {std::pair{20u, 1u}, {21u, 2u}, {500u, 25u}, {1u, 1u}}) {
    MachineScript script;
    script.Join(0);
    Assignment assignment = IntervalOf(0);
    assignment.inner_steps = steps;
    script.Assign(assignment);
    script.Say(StopRequested{.reason = "SIGTERM"});
    EXPECT_EQ(script.Last<EndTrainingEarly>()->steps_min, least) << steps;
  }
}

TEST(WorkerMachineTest, StopAfterTooFewStepsSaysGoodbyeAtOnce) {
  MachineScript script;
  script.Start(0);
  script.Say(StopRequested{.reason = "SIGTERM"});
  script.EndWork(absl::CancelledError("0 steps done, fewer than 1"));
  EXPECT_EQ(script.Count<StartPush>(), 0);
  EXPECT_EQ(script.Count<SendGoodbye>(), 1);
  EXPECT_EQ(script.Noted(NoteKind::kDropped), 1);
  script.EndSession(absl::OkStatus());
  EXPECT_EQ(script.Last<Finish>()->exit_code, kExitDone);
}

TEST(WorkerMachineTest, WhereLateDeltasCountAnIntervalGoesOnPastItsRound) {
  MachineScript script;
  script.Say(Welcomed{.session = script.session(),
                      .identity = {.run_id = "run-1", .incarnation = 1},
                      .version = 0,
                      .heartbeat = absl::Seconds(2),
                      .late_versions_max = 1});
  script.Say(Prepared{});
  script.EndPull(0, "digest");
  script.Assign(IntervalOf(0));
  script.CloseRound(0);
  EXPECT_EQ(script.Count<CancelWork>(), 0);
  script.EndTraining();
  EXPECT_EQ(script.Count<StartPush>(), 1);
  script.AnswerPush(PushOutcome::kAccepted, "late: it counts in round 1");
  script.CloseRound(1);
  script.Assign(IntervalOf(2));
  EXPECT_EQ(script.Count<StartPull>(), 2);
  script.EndPull(2, "digest");
  script.CloseRound(2);
  EXPECT_EQ(script.Count<CancelWork>(), 0);
  script.CloseRound(3);  // two versions late
  EXPECT_EQ(script.Count<CancelWork>(), 1);
}

TEST(WorkerMachineTest, StopWithoutAServerOrInAStrictRunSendsNoPart) {
  for (const bool strict : {true, false}) {
    MachineScript script;
    script.Say(Welcomed{.session = script.session(),
                        .identity = {.run_id = "run-1", .incarnation = 1},
                        .version = 0,
                        .heartbeat = absl::Seconds(2),
                        .partial_intervals = !strict});
    script.Say(Prepared{});
    script.EndPull(0, "digest");
    script.Assign(IntervalOf(0));
    if (!strict) script.EndSession(kBroken);
    script.Say(StopRequested{.reason = "SIGTERM"});
    EXPECT_EQ(script.Count<CancelWork>(), 1);
    EXPECT_EQ(script.Count<SendGoodbye>(), strict ? 1 : 0);
    if (strict) script.EndSession(absl::OkStatus());
    EXPECT_FALSE(script.machine().finished());  // the engine has not stopped
    script.EndWork(absl::CancelledError(""));
    EXPECT_EQ(script.Last<Finish>()->exit_code, kExitDone);
    EXPECT_EQ(script.Count<StartPush>(), 0);
  }
}

TEST(WorkerMachineTest, AStepThatOutlastsTheGraceIsLeftBehind) {
  MachineScript script;
  script.Start(0);
  script.Say(StopRequested{.reason = "SIGTERM"});
  script.RunTimers(absl::Seconds(5));
  EXPECT_EQ(script.Count<SendGoodbye>(), 0);
  EXPECT_EQ(script.Last<SendProgress>()->phase, WorkerPhase::kTraining);  // its lease runs on
  EXPECT_GE(script.Count<SendProgress>(), 3);
  script.RunTimers(absl::Seconds(1));
  EXPECT_EQ(script.Count<CancelWork>(), 1);
  EXPECT_EQ(script.Count<SendGoodbye>(), 1);
  script.EndSession(absl::OkStatus());
  EXPECT_FALSE(script.machine().finished());
  script.RunTimers(absl::Seconds(2));
  EXPECT_TRUE(script.machine().finished());
}

TEST(WorkerMachineTest, APartThatComesTooLateIsNotSent) {
  MachineScript script;
  script.Start(0);
  script.Say(StopRequested{.reason = "SIGTERM"});
  script.RunTimers(absl::Seconds(6));
  script.EndTraining();
  EXPECT_EQ(script.Count<StartEncoding>(), 0);
  EXPECT_EQ(script.Count<StartPush>(), 0);
}

TEST(WorkerMachineTest, StopInTheEvaluationSaysGoodbye) {
  MachineScript script;
  script.Start(0, 1);
  script.Say(StopRequested{.reason = "SIGTERM"});
  EXPECT_EQ(script.Count<CancelWork>(), 1);
  EXPECT_EQ(script.Count<SendGoodbye>(), 1);
}

TEST(WorkerMachineTest, StopLastsNoLongerThanTheGrace) {
  MachineScript script({.leave = absl::Seconds(3)});
  script.Start(0);
  const absl::Time begin = script.now();
  script.Say(StopRequested{.reason = "SIGTERM"});
  script.RunTimers(absl::Seconds(2));
  EXPECT_FALSE(script.machine().finished());
  script.RunTimers(absl::Seconds(1));
  ASSERT_TRUE(script.machine().finished());
  EXPECT_EQ(script.now() - begin, absl::Seconds(3));
  EXPECT_EQ(script.Count<CloseSession>(), 1);
  EXPECT_EQ(script.Last<Finish>()->exit_code, kExitDone);
}

TEST(WorkerMachineTest, StopLetsADeltaOnItsWayArrive) {
  MachineScript script;
  script.Start(0);
  script.EndTraining();
  script.Say(StopRequested{.reason = "SIGTERM"});
  EXPECT_EQ(script.Count<SendGoodbye>(), 0);
  script.AnswerPush(PushOutcome::kAccepted);
  EXPECT_EQ(script.Count<SendGoodbye>(), 1);
  EXPECT_EQ(script.Count<CancelPush>(), 0);
}

TEST(WorkerMachineTest, StopWaitsForADeltaForThreeQuartersOfTheGrace) {
  MachineScript script;
  script.Start(0);
  script.EndTraining();
  script.Say(StopRequested{.reason = "SIGTERM"});
  script.RunTimers(absl::Seconds(5));
  EXPECT_EQ(script.Count<CancelPush>(), 0);
  script.RunTimers(absl::Seconds(1));
  EXPECT_EQ(script.Count<CancelPush>(), 1);
  EXPECT_EQ(script.Count<SendGoodbye>(), 1);
}

TEST(WorkerMachineTest, StopWithoutASessionExitsAtOnce) {
  MachineScript script;
  script.EndSession(kBroken);
  script.Say(StopRequested{.reason = "SIGTERM"});
  EXPECT_EQ(script.Last<Finish>()->exit_code, kExitDone);
}

TEST(WorkerMachineTest, StopWhilePullingCancelsThePull) {
  MachineScript script;
  script.Join(0);
  script.Assign(IntervalOf(1));
  script.Say(StopRequested{.reason = "SIGTERM"});
  EXPECT_EQ(script.Count<CancelPull>(), 1);
  script.EndSession(absl::OkStatus());
  EXPECT_TRUE(script.machine().finished());
}

TEST(WorkerMachineTest, NothingHappensAfterFinish) {
  MachineScript script;
  script.EndSession(absl::InvalidArgumentError("x"));
  ASSERT_TRUE(script.machine().finished());
  script.Clear();
  script.Say(StopRequested{.reason = "SIGTERM"});
  script.Say(TimerFired{});
  EXPECT_EQ(script.Count<Note>() + script.Count<OpenSession>() + script.Count<Finish>(), 0);
  EXPECT_EQ(script.machine().NextDeadline(), std::nullopt);
}

}  // namespace
}  // namespace autoloco::worker
