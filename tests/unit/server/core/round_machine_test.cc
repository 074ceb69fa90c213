// Rounds and the end of the run: what opens, closes, aborts and finishes them.
#include "server/core/round_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/core_script.h"

namespace autoloco::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Delivers and commits the open round of `names`.
void PlayRound(CoreScript* script, const std::vector<std::string>& names) {
  for (const std::string& name : names) script->Push(name, "round" + std::to_string(script->Status().round));
  script->Commit();
}

CoreConfig WithoutEvaluation() {
  CoreConfig config = SmallConfig();
  config.evaluation_windows = 0;
  return config;
}

TEST(RoundMachine, WaitsForTheFirstWorkersAndSaysHowMany) {
  CoreScript script;
  script.Join("b");
  EXPECT_EQ(script.Status().phase, RunPhase::kWaiting);
  EXPECT_EQ(script.Status().reason, "waiting for 1 more of 2 workers");
  EXPECT_TRUE(script.All<SendAssignment>().empty());
  script.Join("a");
  EXPECT_EQ(script.Status().phase, RunPhase::kTraining);
  EXPECT_EQ(script.Status().assigned, 2u);
  EXPECT_EQ(script.Status().reason, "0 of 2 deltas are in");
}

TEST(RoundMachine, LeasesAndEvaluationPartsFollowTheNamesNotTheOrderOfArrival) {
  for (const bool reversed : {false, true}) {
    CoreScript script;
    script.Join(reversed ? "b" : "a");
    script.Join(reversed ? "a" : "b");
    EXPECT_EQ(script.AssignmentOf("a"), (Assignment{0, 5, 0, 0, 20, 0, 2}));
    EXPECT_EQ(script.AssignmentOf("b"), (Assignment{0, 5, 0, 20, 20, 1, 2}));
  }
}

TEST(RoundMachine, OwnDataHasACursorPerWorker) {
  CoreConfig config = WithoutEvaluation();
  config.shared_data = false;
  CoreScript script(config);
  script.Join("a");
  script.Join("b");
  EXPECT_EQ(script.AssignmentOf("b").first_sample, 0u);
  PlayRound(&script, {"a", "b"});
  EXPECT_EQ(script.AssignmentOf("a").first_sample, 20u);
  EXPECT_EQ(script.AssignmentOf("b").first_sample, 20u);
}

TEST(RoundMachine, TwentyThreeStepsInRoundsOfFiveEndWithThree) {
  CoreScript script(WithoutEvaluation());
  script.Join("a");
  script.Join("b");
  std::vector<std::uint32_t> lengths;
  std::vector<std::uint64_t> firsts;
  for (int round = 0; round < 5; ++round) {
    lengths.push_back(script.AssignmentOf("a").inner_steps);
    firsts.push_back(script.AssignmentOf("a").first_inner_step);
    PlayRound(&script, {"a", "b"});
  }
  EXPECT_THAT(lengths, ElementsAre(5, 5, 5, 5, 3));
  EXPECT_THAT(firsts, ElementsAre(0, 5, 10, 15, 20));
  ASSERT_TRUE(script.Last<StartCheckpoint>());
  EXPECT_EQ(script.Last<StartCheckpoint>()->snapshot.inner_steps_done, 23u);
  EXPECT_FALSE(script.Last<RunFinished>()) << "the run ends when its model is stored";
  script.Checkpoint();
  ASSERT_TRUE(script.Last<RunFinished>());
  EXPECT_EQ(script.Last<RunFinished>()->exit_code, 0);
  EXPECT_EQ(script.All<SendDrain>().size(), 2u);
  EXPECT_TRUE(script.Last<SendDrain>()->run_done);
  EXPECT_EQ(script.Status().phase, RunPhase::kDone);
  EXPECT_EQ(script.Status().worker_inner_steps, 46u);
}

TEST(RoundMachine, ContributionsAreInNameOrderWithEqualWeights) {
  CoreScript script;
  script.Join("a");
  script.Join("b");
  script.Push("b");
  script.Push("a");
  const auto commit = script.Last<StartCommit>();
  ASSERT_TRUE(commit);
  ASSERT_EQ(commit->contributions.size(), 2u);
  EXPECT_EQ(commit->contributions[0].push, (PushKey{script.SenderOf("a").worker, 0, 0}));
  EXPECT_EQ(commit->contributions[1].push, (PushKey{script.SenderOf("b").worker, 0, 0}));
  EXPECT_EQ(commit->contributions[0].weight, 0.5);
  EXPECT_EQ(script.Status().phase, RunPhase::kCommitting);
  script.Commit();
  EXPECT_EQ(script.All<SendRoundClosed>().size(), 2u);
  EXPECT_EQ(script.Last<RoundCommitted>()->applied, 2u);
}

TEST(RoundMachine, ADeadWorkerDoesNotStopTheRound) {
  CoreScript script;
  script.Join("a");
  script.Join("b");
  script.Push("a");
  script.Say(SessionClosed{script.SessionOf("b")});
  script.RunTimers(absl::Seconds(2));
  EXPECT_FALSE(script.Last<StartCommit>()) << "it may come back within its grace";
  script.RunTimers(absl::Seconds(2));
  ASSERT_TRUE(script.Last<StartCommit>());
  EXPECT_EQ(script.Decided(Reason::kDisconnectGrace), 1);
  EXPECT_EQ(script.Last<StartCommit>()->contributions.size(), 1u);
  EXPECT_EQ(script.Last<StartCommit>()->contributions[0].weight, 1.0);
  script.Commit();
  EXPECT_EQ(script.Status().phase, RunPhase::kTraining);
  EXPECT_EQ(script.Status().assigned, 1u);
}

TEST(RoundMachine, AFrozenWorkerCostsItsLease) {
  CoreScript script;
  script.Join("a");
  script.Join("b");
  script.Push("a");
  script.Advance(absl::Seconds(10));
  script.Say(ProgressReceived{script.SessionOf("a"), script.SenderOf("a"), {}});
  script.RunTimers(absl::Seconds(4));
  EXPECT_FALSE(script.Last<StartCommit>());
  script.RunTimers(absl::Seconds(1));
  ASSERT_TRUE(script.Last<StartCommit>());
  EXPECT_EQ(script.Decided(Reason::kLeaseExpired), 1);
  EXPECT_EQ(script.Decided(Reason::kOthersGone), 1);
  EXPECT_EQ(script.Last<CloseSession>()->session, script.SessionOf("b"));
}

TEST(RoundMachine, APushUnderWayHoldsTheGrace) {
  CoreScript script;
  script.Join("a");
  script.Join("b");
  script.Push("a");
  const Ticket push = script.OpenPush("b", 0, "late", 5);
  script.Say(SessionClosed{script.SessionOf("b")});
  script.RunTimers(absl::Seconds(10));
  EXPECT_FALSE(script.Last<StartCommit>());
  script.Say(PushVerified{push, absl::OkStatus(), true, ""});
  ASSERT_TRUE(script.Last<StartCommit>());
  EXPECT_EQ(script.Last<StartCommit>()->contributions.size(), 2u);
}

TEST(RoundMachine, AJoinerTakesPartInTheNextRound) {
  CoreScript script(WithoutEvaluation());
  script.Join("a");
  script.Join("b");
  script.Join("c");
  EXPECT_EQ(script.Status().assigned, 2u);
  PlayRound(&script, {"a", "b"});
  EXPECT_EQ(script.Status().assigned, 3u);
  EXPECT_EQ(script.AssignmentOf("c").round, 1u);
}

TEST(RoundMachine, AGoodbyeFreesTheRoundAndItsDeliveredDeltaStillCounts) {
  CoreScript script;
  script.Join("a");
  script.Join("b");
  script.Push("b");
  script.Say(GoodbyeReceived{script.SessionOf("b"), script.SenderOf("b"), "maintenance"});
  EXPECT_FALSE(script.Last<StartCommit>());
  script.Push("a");
  ASSERT_TRUE(script.Last<StartCommit>());
  EXPECT_EQ(script.Last<StartCommit>()->contributions.size(), 2u);
}

TEST(RoundMachine, ARoundWithNobodyLeftIsAbortedAndOpensAgainWithTheSameSamples) {
  CoreScript script;
  script.Join("a");
  script.Join("b");
  for (const char* name : {"a", "b"}) script.Say(GoodbyeReceived{script.SessionOf(name), script.SenderOf(name), ""});
  EXPECT_EQ(script.Decided(Reason::kAborted), 1);
  EXPECT_EQ(script.Status().rounds_aborted, 1u);
  EXPECT_EQ(script.Status().phase, RunPhase::kWaiting);
  script.Join("c");  // min_workers is enough once the run has started
  EXPECT_EQ(script.AssignmentOf("c").round, 0u);
  EXPECT_EQ(script.AssignmentOf("c").first_sample, 0u);
  script.Push("c");
  EXPECT_TRUE(script.Last<StartCommit>());
}

TEST(RoundMachine, HeldOutLossIsTheSumOfTheParts) {
  CoreScript script;
  script.Join("a");
  script.Join("b");
  script.Evaluate("a", 30, 10);
  EXPECT_FALSE(script.Last<EvaluationReady>());
  script.Evaluate("b", 10, 10);
  ASSERT_TRUE(script.Last<EvaluationReady>());
  EXPECT_EQ(script.Last<EvaluationReady>()->point.loss, 2.0);
  EXPECT_EQ(script.Last<EvaluationReady>()->point.tokens, 20u);
  EXPECT_EQ(script.Status().evaluations.size(), 1u);
}

TEST(RoundMachine, APartThatNeverCameIsLeftOutWhenTheRoundCloses) {
  CoreScript script;
  script.Join("a");
  script.Join("b");
  script.Evaluate("a", 30, 10);
  script.Push("a");
  script.Push("b");
  script.Commit();
  ASSERT_TRUE(script.Last<EvaluationReady>());
  EXPECT_EQ(script.Last<EvaluationReady>()->point.loss, 3.0);
}

TEST(RoundMachine, TheLastVersionIsEvaluatedBeforeTheEnd) {
  CoreConfig config = SmallConfig();
  config.interval.total_inner_steps = 5;
  CoreScript script(config);
  script.Join("a");
  script.Join("b");
  PlayRound(&script, {"a", "b"});
  EXPECT_EQ(script.Status().phase, RunPhase::kFinishing);
  EXPECT_EQ(script.AssignmentOf("a"), (Assignment{1, 0, 5, 0, 0, 0, 2}));
  script.Evaluate("a", 3, 2);
  EXPECT_EQ(script.Status().phase, RunPhase::kFinishing);
  script.Evaluate("b", 1, 2);
  EXPECT_EQ(script.Last<EvaluationReady>()->point.loss, 1.0);
  EXPECT_EQ(script.Last<StartCheckpoint>()->snapshot.evaluations.back().version, 1u);
  script.Checkpoint();
  EXPECT_EQ(script.Last<RunFinished>()->exit_code, 0);
}

TEST(RoundMachine, APartThatNoWorkerCanHaveEvaluatedDoesNotCount) {
  struct Case {
    double loss_sum;
    std::uint64_t tokens;
    const char* why;
  };
  const double infinite = std::numeric_limits<double>::infinity();
  CoreConfig config = SmallConfig();
  config.evaluation_windows = 5;  // 3 of them a's, 2 b's
  config.tokens_per_sample = 4;
  for (const Case& one : std::vector<Case>{{std::nan(""), 2, "want 0 to 100 nats, got nan"},
                                           {infinite, 2, "got inf"},
                                           {-0.5, 2, "got -0.5"},
                                           {100.5, 2, "got 100.5"},
                                           {1, 0, "over 0 tokens"},
                                           {1, 13, "at most 12, got 13"}}) {
    CoreScript script(config);
    script.Join("a");
    script.Join("b");
    script.Evaluate("a", one.loss_sum, one.tokens);
    ASSERT_EQ(script.Decided(Reason::kEvaluationRefused), 1) << one.why;
    EXPECT_THAT(script.Last<Decision>()->text, HasSubstr(one.why));
    EXPECT_EQ(script.Last<Decision>()->worker.name, "a");
    script.Evaluate("a", 2, 2);  // one part a worker
    script.Evaluate("b", 6, 8);
    ASSERT_TRUE(script.Last<EvaluationReady>()) << one.why;
    EXPECT_EQ(script.Last<EvaluationReady>()->point, (EvaluationPoint{0, 0, 0.75, 8}));
    EXPECT_EQ(script.Status().evaluations.size(), 1u);
  }
}

TEST(RoundMachine, TheLargestPartCounts) {
  CoreConfig config = SmallConfig();
  config.evaluation_windows = 5;
  config.tokens_per_sample = 4;
  CoreScript script(config);
  script.Join("a");
  script.Join("b");
  script.Evaluate("a", 600, 12);
  script.Evaluate("b", 400, 8);
  EXPECT_EQ(script.Last<EvaluationReady>()->point.loss, 50.0);
}

TEST(RoundMachine, AVersionWithoutAPartThatCountsIsReportedAndHoldsNobodyUp) {
  CoreConfig config = SmallConfig();
  config.interval.total_inner_steps = 5;
  CoreScript script(config);
  script.Join("a");
  script.Join("b");
  PlayRound(&script, {"a", "b"});
  EXPECT_EQ(script.Decided(Reason::kNotEvaluated), 1) << "version 0, of which no part came";
  script.Clear();
  script.Evaluate("a", std::nan(""), 2);
  script.Evaluate("b", std::nan(""), 2);
  EXPECT_FALSE(script.Last<EvaluationReady>());
  EXPECT_EQ(script.Decided(Reason::kEvaluationRefused), 2);
  EXPECT_EQ(script.Decided(Reason::kNotEvaluated), 1);
  EXPECT_TRUE(script.Status().evaluations.empty());
  script.Checkpoint();
  EXPECT_TRUE(script.Last<RunFinished>());
}

TEST(RoundMachine, OnlyWhoWasGivenAPartIsHeard) {
  CoreConfig config = SmallConfig();
  CoreScript script(config);
  script.Join("a");
  script.Join("b");
  script.Evaluate("a", 30, 10);
  ProgressReceived other{script.Join("c"), script.SenderOf("c"), {}};
  other.progress.evaluation = EvaluationPart{0, 1000, 100};
  script.Say(other);
  EXPECT_FALSE(script.Last<EvaluationReady>());
  script.Evaluate("b", 10, 10);
  EXPECT_EQ(script.Last<EvaluationReady>()->point.tokens, 20u);
}

TEST(RoundMachine, AWorkerWithNothingToEvaluateHoldsNobodyUp) {
  CoreConfig config = SmallConfig();
  config.interval.total_inner_steps = 5;
  CoreScript script(config);
  script.Join("a");
  script.Join("b");
  PlayRound(&script, {"a", "b"});
  script.Evaluate("a", 4, 2);
  script.Evaluate("b", 0, 0);
  ASSERT_TRUE(script.Last<EvaluationReady>());
  EXPECT_EQ(script.Last<EvaluationReady>()->point.loss, 2.0);
  script.Checkpoint();
  EXPECT_TRUE(script.Last<RunFinished>());
}

TEST(RoundMachine, TheEndDoesNotWaitForTheDead) {
  CoreConfig config = SmallConfig();
  config.interval.total_inner_steps = 5;
  config.finish_timeout = absl::Seconds(12);
  CoreScript script(config);
  script.Join("a");
  script.Join("b");
  PlayRound(&script, {"a", "b"});
  script.Evaluate("a", 1, 2);
  script.RunTimers(absl::Seconds(11));
  EXPECT_EQ(script.Status().phase, RunPhase::kFinishing);
  script.RunTimers(absl::Seconds(1));
  EXPECT_EQ(script.Last<EvaluationReady>()->point.tokens, 2u);
  script.Checkpoint();
  EXPECT_TRUE(script.Last<RunFinished>());
}

TEST(RoundMachine, CheckpointsComeEverySoManyRounds) {
  CoreConfig config = WithoutEvaluation();
  config.checkpoint_every_rounds = 2;
  CoreScript script(config);
  script.Join("a");
  script.Join("b");
  std::vector<Version> stored;
  for (int round = 0; round < 5; ++round) PlayRound(&script, {"a", "b"});
  for (const StartCheckpoint& checkpoint : script.All<StartCheckpoint>()) stored.push_back(checkpoint.snapshot.version);
  EXPECT_THAT(stored, ElementsAre(2, 4, 5));
}

TEST(RoundMachine, AFailedLastCheckpointIsAFailedRun) {
  CoreConfig config = WithoutEvaluation();
  config.interval.total_inner_steps = 5;
  CoreScript script(config);
  script.Join("a");
  script.Join("b");
  PlayRound(&script, {"a", "b"});
  script.Checkpoint(absl::ResourceExhaustedError("disk full"));
  ASSERT_TRUE(script.Last<RunFinished>());
  EXPECT_EQ(script.Last<RunFinished>()->exit_code, 1);
  EXPECT_THAT(script.Last<RunFinished>()->reason, HasSubstr("disk full"));
}

TEST(RoundMachine, ShutdownFinishesTheCommitUnderWayAndStores) {
  CoreScript script;
  script.Join("a");
  script.Join("b");
  script.Push("a");
  script.Push("b");
  script.Say(ShutdownRequested{"SIGTERM"});
  EXPECT_FALSE(script.Last<RunFinished>());
  script.Commit();
  ASSERT_TRUE(script.Last<StartCheckpoint>());
  EXPECT_EQ(script.Last<StartCheckpoint>()->snapshot.version, 1u);
  script.Checkpoint();
  EXPECT_EQ(script.Last<RunFinished>()->exit_code, 0);
  EXPECT_FALSE(script.Last<SendDrain>()->run_done);
}

TEST(RoundMachine, ShutdownInARoundStoresItsStartAndKeepsTheRound) {
  CoreScript script(WithoutEvaluation());
  script.Join("a");
  script.Join("b");
  PlayRound(&script, {"a", "b"});
  script.Push("a", "second");
  script.Say(ShutdownRequested{"SIGTERM"});
  EXPECT_FALSE(script.Last<DropSpooled>());
  EXPECT_EQ(script.machine().DurableState().round->DeliveredCount(), 1u);
  EXPECT_EQ(script.Last<StartCheckpoint>()->snapshot.next_sample, 40u);
  const std::size_t welcomes = script.All<SendWelcome>().size();
  script.Hello("c");
  EXPECT_EQ(script.Last<CloseSession>()->status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(script.All<SendWelcome>().size(), welcomes);
}

TEST(RoundMachine, ARestartContinuesWhereTheSnapshotStands) {
  CoreScript before(WithoutEvaluation());
  before.Join("a");
  before.Join("b");
  PlayRound(&before, {"a", "b"});
  before.Say(ShutdownRequested{"SIGTERM"});
  const CoreSnapshot snapshot = before.Last<StartCheckpoint>()->snapshot;

  CoreScript after(WithoutEvaluation(), snapshot);
  after.Join("a");
  EXPECT_EQ(after.AssignmentOf("a"), (Assignment{1, 5, 5, 40, 20, 0, 0})) << "min_workers is enough after the first";
  EXPECT_GT(after.SenderOf("a").worker.incarnation, before.SenderOf("b").worker.incarnation);
}

TEST(RoundMachine, IncarnationsOfAStartAreItsOwn) {
  CoreConfig config = SmallConfig();
  config.first_incarnation = 1'000'001;  // of the second start; the first one ended without a checkpoint
  CoreScript script(config);
  script.Join("a");
  EXPECT_EQ(script.SenderOf("a").worker.incarnation, 1'000'001u);
  script.Say(HelloReceived{90, {"", {"b", 1}}, 1});
  EXPECT_THAT(std::string(script.Last<CloseSession>()->status.message()), HasSubstr("incarnation expired"));
}

TEST(RoundMachine, AFinishedRunThatIsStartedAgainEndsAtOnce) {
  CoreSnapshot snapshot;
  snapshot.version = 5;
  snapshot.inner_steps_done = 23;
  CoreScript script(SmallConfig(), snapshot);
  script.RunTimers(absl::ZeroDuration());
  ASSERT_TRUE(script.Last<RunFinished>());
  EXPECT_EQ(script.Last<RunFinished>()->exit_code, 0);
  EXPECT_TRUE(script.Last<RunFinished>()->completed);
}

TEST(RoundMachine, AnAbortedRoundIsEvaluatedAgainAndCountsOnce) {
  CoreScript script;
  script.Join("a");
  script.Join("b");
  for (int time = 0; time < 3; ++time) {
    script.Evaluate("a", 30, 10);
    script.Evaluate("b", 10, 10);
    for (const char* name : {"a", "b"}) script.Say(GoodbyeReceived{script.SessionOf(name), script.SenderOf(name), ""});
    script.Join("a");
    script.Join("b");
  }
  EXPECT_EQ(script.Status().evaluations.size(), 1u);
}

TEST(RoundMachine, ShutdownStoresAgainWhatCouldNotBeStored) {
  CoreConfig config = WithoutEvaluation();
  config.checkpoint_every_rounds = 1;
  CoreScript script(config);
  script.Join("a");
  script.Join("b");
  PlayRound(&script, {"a", "b"});
  script.Checkpoint(absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(script.Decided(Reason::kCheckpointFailed), 1);
  script.Clear();
  script.Say(ShutdownRequested{"SIGTERM"});
  ASSERT_TRUE(script.Last<StartCheckpoint>());
  EXPECT_FALSE(script.Last<RunFinished>());
  script.Checkpoint();
  EXPECT_EQ(script.Last<RunFinished>()->exit_code, 0);
}

TEST(RoundMachine, TooFewWorkersForTooLongEndsWith75) {
  CoreScript script;
  script.Join("a");
  for (int i = 0; i < 70; ++i) {
    script.Say(ProgressReceived{script.SessionOf("a"), script.SenderOf("a"), {}});
    script.RunTimers(absl::Seconds(9));
  }
  ASSERT_TRUE(script.Last<RunFinished>());
  EXPECT_EQ(script.Last<RunFinished>()->exit_code, 75);
  EXPECT_THAT(script.Last<RunFinished>()->reason, HasSubstr("waiting for 1 more of 2 workers"));
}

TEST(RoundMachine, SameInputsSameEffects) {
  const auto play = [] {
    CoreScript script;
    script.Join("b");
    script.Join("a");
    script.Evaluate("a", 3, 2);
    script.Push("b");
    script.Say(SessionClosed{script.SessionOf("a")});
    script.RunTimers(absl::Seconds(30));
    std::string trace;
    for (const Decision& decision : script.All<Decision>()) {
      trace += std::string(ReasonName(decision.reason)) + " " + decision.worker.name + " " + decision.text + "\n";
    }
    return trace;
  };
  EXPECT_EQ(play(), play());
  EXPECT_THAT(play(), HasSubstr("disconnect_grace"));
}

// ------------------------------------------------------------------------------------------------------- strict

CoreConfig Strict() {
  CoreConfig config = WithoutEvaluation();
  config.strict = true;
  config.min_workers = 2;
  config.start_workers = 0;
  return config;
}

TEST(RoundMachineStrict, TakesExactlyItsWorkers) {
  CoreScript script(Strict());
  script.Join("a");
  script.Join("b");
  script.Hello("c");
  ASSERT_TRUE(script.Last<CloseSession>());
  EXPECT_THAT(std::string(script.Last<CloseSession>()->status.message()), HasSubstr("a, b"));
}

TEST(RoundMachineStrict, TheSuccessorOfALostWorkerDoesItsInterval) {
  CoreScript script(Strict());
  script.Join("a");
  script.Join("b");
  const Assignment lost = script.AssignmentOf("b");
  script.Push("a");
  script.Say(SessionClosed{script.SessionOf("b")});
  script.RunTimers(absl::Seconds(14));
  script.Say(ProgressReceived{script.SessionOf("a"), script.SenderOf("a"), {}});
  script.RunTimers(absl::Seconds(1));
  EXPECT_EQ(script.Decided(Reason::kLeaseExpired), 1);
  EXPECT_FALSE(script.Last<StartCommit>());
  EXPECT_EQ(script.Status().reason, "strict run waiting for b");
  script.Join("b");
  EXPECT_EQ(script.Decided(Reason::kReassigned), 1);
  EXPECT_EQ(script.AssignmentOf("b"), lost);
  script.Push("b");
  EXPECT_EQ(script.Last<StartCommit>()->contributions.size(), 2u);
}

}  // namespace
}  // namespace autoloco::server
