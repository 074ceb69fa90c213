// What survives the death of the server, and what nobody sees before it is durable.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/core_script.h"

namespace autoloco::server {
namespace {

using testing::HasSubstr;

constexpr std::size_t kForEver = std::numeric_limits<std::size_t>::max();

// Two workers and the shell, each doing what is next for it by what it has seen, and no more than that.
class Players {
 public:
  explicit Players(CoreScript* script) : script_(script) {}

  // Until the run is over, or more than `steps` steps have made records.
  void Play(std::size_t steps) {
    for (int turn = 0; turn < 1000; ++turn) {
      if (script_->records().size() > steps || script_->Last<RunFinished>()) return;
      Turn();
    }
    ADD_FAILURE() << "the run does not end: " << script_->Status().reason;
  }

 private:
  void Turn() {
    if (script_->CommitAsked()) return script_->Commit();
    if (script_->CheckpointAsked()) return script_->Checkpoint();
    for (const char* name : {"a", "b"}) {
      if (WorkerActs(name)) return;
    }
    script_->RunTimers(absl::ZeroDuration());
  }

  bool WorkerActs(const std::string& name) {
    const bool known = script_->Knows(name);
    if (connected_.insert(name).second) {
      known ? script_->Reconnect(name) : script_->Hello(name);
      return true;
    }
    if (!known) return false;
    const Assignment* assignment = script_->FindAssignment(name);
    if (assignment == nullptr && !ready_.insert(name).second) return false;
    if (assignment == nullptr) {
      script_->Ready(name);
      return true;
    }
    if (assignment->evaluation_parts > 0 && evaluated_.insert({name, assignment->round}).second) {
      script_->Evaluate(name, name == "a" ? 30 : 10, 10);
      return true;
    }
    if (assignment->inner_steps == 0 || !pushed_.insert({name, assignment->round}).second) return false;
    script_->Push(name, name + std::to_string(assignment->round));
    return true;
  }

  CoreScript* const script_;
  std::set<std::string> connected_;
  std::set<std::string> ready_;
  std::set<std::pair<std::string, Round>> evaluated_;
  std::set<std::pair<std::string, Round>> pushed_;
};

// What a run amounts to, whoever had which incarnation.
struct Told {
  std::map<std::pair<Round, std::string>, Assignment> assignments;
  std::map<Round, std::vector<std::pair<std::string, double>>> sums;
  std::map<Round, OuterStep> steps;
};

// Adds what one life of the server has told; what it tells again must be the same.
void Add(const CoreScript& script, Told* told) {
  for (const SendAssignment& sent : script.All<SendAssignment>()) {
    const auto key = std::make_pair(sent.assignment.round, script.NameOf(sent.session));
    EXPECT_EQ(told->assignments.emplace(key, sent.assignment).first->second, sent.assignment)
        << key.second << " in round " << key.first;
  }
  for (const StartCommit& commit : script.All<StartCommit>()) {
    std::vector<std::pair<std::string, double>> sum;
    for (const auto& one : commit.contributions) sum.emplace_back(one.push.worker.name, one.weight);
    EXPECT_EQ(told->sums.emplace(commit.round, sum).first->second, sum) << "round " << commit.round;
    EXPECT_EQ(told->steps.emplace(commit.round, commit.step).first->second, commit.step);
  }
}

CoreConfig RestartConfig(bool strict) {
  CoreConfig config = SmallConfig();
  config.strict = strict;
  config.min_workers = config.start_workers = 2;
  config.checkpoint_every_rounds = 2;
  return config;
}

// The accepted pushes that somebody has been told of.
std::set<std::string> Acknowledged(const CoreScript& script) {
  std::set<Ticket> answered;
  for (const AnswerPush& answer : script.All<AnswerPush>()) {
    if (answer.outcome == PushOutcome::kAccepted) answered.insert(answer.ticket);
  }
  std::set<std::string> digests;
  for (const StoreRecords& store : script.All<StoreRecords>()) {
    for (const Record& record : store.records) {
      const auto* push = std::get_if<PushRecord>(&record);
      if (push != nullptr && answered.contains(push->payload)) digests.insert(push->push.payload_digest);
    }
  }
  return digests;
}

std::set<std::string> Remembered(const CoreState& state) {
  std::set<std::string> digests;
  for (const auto& [key, push] : state.pushes.all()) {
    if (push.outcome == PushOutcome::kAccepted) digests.insert(push.payload_digest);
  }
  return digests;
}

TEST(Restart, AfterAnyPrefixOfTheRecordsTheRunGoesOnAsIfNothingHadHappened) {
  for (const bool strict : {false, true}) {
    const CoreConfig config = RestartConfig(strict);
    CoreScript undisturbed(config);
    Players(&undisturbed).Play(kForEver);
    Told expected;
    Add(undisturbed, &expected);
    EXPECT_EQ(expected.sums.size(), 5u);
    CoreSnapshot end = undisturbed.machine().DurableState().run;
    ASSERT_GT(undisturbed.records().size(), 30u);

    for (std::size_t steps = 0; steps < undisturbed.records().size(); ++steps) {
      SCOPED_TRACE(testing::Message() << (strict ? "strict, " : "") << steps << " steps are durable");
      CoreScript before(config);
      before.HoldRecordsAfter(steps);
      Players(&before).Play(steps);
      const CoreState state = before.StateAfter(steps);
      const std::set<std::string> remembered = Remembered(state);
      for (const std::string& digest : Acknowledged(before)) EXPECT_TRUE(remembered.contains(digest)) << digest;

      CoreScript after(config, state, before);
      if (state.round && state.round->decision) {
        after.RunTimers(absl::ZeroDuration());
        ASSERT_TRUE(after.Last<StartCommit>()) << "a decided round is committed at once";
        EXPECT_EQ(*after.Last<StartCommit>(), *state.round->decision);
      }
      Players(&after).Play(kForEver);
      Told told;
      Add(before, &told);
      Add(after, &told);
      EXPECT_EQ(told.assignments, expected.assignments);
      EXPECT_EQ(told.sums, expected.sums);
      EXPECT_EQ(told.steps, expected.steps);
      CoreSnapshot run = after.machine().DurableState().run;
      run.next_incarnation = end.next_incarnation;
      EXPECT_EQ(run, end);
      EXPECT_EQ(after.Last<RunFinished>()->exit_code, 0);
    }
  }
}

TEST(Restart, NothingIsSeenBeforeItIsDurable) {
  CoreScript script(RestartConfig(false));
  script.HoldRecordsAfter(0);
  script.Hello("a");
  EXPECT_FALSE(script.Last<SendWelcome>());
  script.Store();
  ASSERT_TRUE(script.Last<SendWelcome>());
  script.Ready("a");
  script.Hello("b");
  script.Store();
  script.Ready("b");
  EXPECT_FALSE(script.Last<SendAssignment>());
  script.Store();
  EXPECT_EQ(script.All<SendAssignment>().size(), 2u);

  script.Push("a", "first");
  EXPECT_TRUE(script.Last<AdmitPush>()) << "bytes may come meanwhile";
  EXPECT_FALSE(script.Last<AnswerPush>());
  script.Say(PullOpened{900, script.SenderOf("a")});
  EXPECT_FALSE(script.Last<ServePull>());
  script.Push("a", "first");
  EXPECT_FALSE(script.Last<AnswerPush>()) << "nor is it said again";
  script.Store();
  EXPECT_EQ(script.All<AnswerPush>().size(), 2u);
  EXPECT_TRUE(script.Last<ServePull>());
  script.Push("b", "second");
  EXPECT_EQ(script.Status().phase, RunPhase::kCommitting) << "the core does not wait";
  EXPECT_FALSE(script.Last<StartCommit>());
  script.Store();
  EXPECT_TRUE(script.Last<StartCommit>());
  script.Commit();
  EXPECT_FALSE(script.Last<SendRoundClosed>());
  EXPECT_TRUE(script.Last<RoundCommitted>()) << "what only an operator sees comes at once";
}

TEST(Restart, WhatChangesNothingDurableDoesNotWait) {
  CoreScript script(RestartConfig(false));
  script.Join("a");
  script.HoldRecordsAfter(script.records().size());
  script.Say(ProgressReceived{script.SessionOf("a"), script.SenderOf("a"), {}});
  script.Say(WorkerHeard{script.SenderOf("a")});
  script.Say(PullOpened{900, script.SenderOf("a")});
  EXPECT_TRUE(script.Last<ServePull>());
}

// Two workers in round 1, "a" has delivered; then the server is killed.
class RestartInARound : public ::testing::Test {
 protected:
  void SetUp() override {
    before_.Join("a");
    before_.Join("b");
    for (const char* name : {"a", "b"}) before_.Push(name, "round 0");
    before_.Commit();
    before_.Push("a", "round 1");
  }
  CoreScript Restart() {
    return CoreScript(RestartConfig(false), before_.StateAfter(before_.records().size()), before_);
  }

  CoreScript before_{RestartConfig(false)};
};

TEST_F(RestartInARound, WorkersComeBackUnderTheirIncarnationAndGoOn) {
  CoreScript after = Restart();
  EXPECT_EQ(after.Status().phase, RunPhase::kTraining);
  EXPECT_EQ(after.Status().alive, 2u);
  EXPECT_EQ(after.Status().contributed, 1u);
  after.Reconnect("a");
  EXPECT_EQ(after.Last<SendWelcome>()->version, 1u);
  EXPECT_FALSE(after.Last<SendAssignment>()) << "it has delivered";
  after.Reconnect("b");
  EXPECT_EQ(after.Last<SendAssignment>()->assignment, before_.AssignmentOf("b"));
  after.Push("b", "round 1");
  ASSERT_TRUE(after.Last<StartCommit>());
  EXPECT_EQ(after.Last<StartCommit>()->contributions.size(), 2u);
  EXPECT_EQ(after.Last<StartCommit>()->contributions[0].push, (PushKey{before_.SenderOf("a").worker, 1, 0}));
}

TEST_F(RestartInARound, ADeltaCountsBeforeItsSessionIsBack) {
  CoreScript after = Restart();
  after.Push("b", "round 1");
  EXPECT_EQ(after.Last<AnswerPush>()->outcome, PushOutcome::kAccepted);
  EXPECT_TRUE(after.Last<StartCommit>());
}

TEST_F(RestartInARound, RecordedOutcomesStand) {
  CoreScript after = Restart();
  after.Push("a", "round 1");
  EXPECT_TRUE(after.Last<AnswerPush>()->replayed);
  after.Push("a", "another delta");
  EXPECT_EQ(after.Last<RefusePush>()->status.code(), absl::StatusCode::kAlreadyExists);
  after.Say(PushStatusAsked{901, after.SenderOf("b"), 0, 0});
  EXPECT_TRUE(after.Last<AnswerPushStatus>()->known);
}

TEST_F(RestartInARound, TheRoundWaitsALeaseForThoseWhoHaveNotBeenHeardOf) {
  CoreScript after = Restart();
  after.Reconnect("a");
  after.RunTimers(absl::Seconds(14));
  EXPECT_FALSE(after.Last<StartCommit>()) << "a restart is no absence of the worker";
  after.Say(WorkerHeard{after.SenderOf("a")});
  after.RunTimers(absl::Seconds(2));
  ASSERT_TRUE(after.Last<StartCommit>());
  EXPECT_EQ(after.Decided(Reason::kLeaseExpired), 1);
  EXPECT_EQ(after.Last<StartCommit>()->contributions.size(), 1u);
}

TEST_F(RestartInARound, ASecondAbsenceHasTheUsualGrace) {
  CoreScript after = Restart();
  after.Say(SessionClosed{after.Reconnect("b")});
  after.RunTimers(absl::Seconds(4));
  EXPECT_EQ(after.Decided(Reason::kDisconnectGrace), 1);
}

TEST_F(RestartInARound, AnOrderlyEndKeepsTheRoundToo) {
  before_.Clear();
  const Ticket late = before_.OpenPush("b", 1, "round 1", 5);
  before_.Say(ShutdownRequested{"SIGTERM"});
  before_.Say(PushVerified{late, absl::OkStatus(), true, ""});
  EXPECT_EQ(before_.Last<RefusePush>()->status.code(), absl::StatusCode::kUnavailable);
  before_.OpenPush("b", 1, "round 1", 5);
  EXPECT_EQ(before_.Last<RefusePush>()->reason, Reason::kShutdown);
  EXPECT_EQ(before_.Last<StartCheckpoint>()->snapshot.next_sample, 40u) << "a checkpoint stands between rounds";
  before_.Checkpoint();
  EXPECT_TRUE(before_.Last<RunFinished>());

  CoreScript after = Restart();
  after.Push("b", "round 1");
  ASSERT_TRUE(after.Last<StartCommit>());
  EXPECT_EQ(after.Last<StartCommit>()->contributions.size(), 2u);
}

TEST_F(RestartInARound, IncarnationsOfTheNewStartAreItsOwn) {
  CoreConfig config = RestartConfig(false);
  config.first_incarnation = 1'000'001;
  CoreScript after(config, before_.StateAfter(before_.records().size()));
  after.Join("c");
  EXPECT_EQ(after.SenderOf("c").worker.incarnation, 1'000'001u);
}

TEST(RestartStrict, ParticipantsAndTheirIntervalsSurvive) {
  CoreScript before(RestartConfig(true));
  before.Join("a");
  before.Join("b");
  before.Push("a", "first");
  CoreScript after(RestartConfig(true), before.StateAfter(before.records().size()));
  after.Hello("c");
  EXPECT_THAT(std::string(after.Last<CloseSession>()->status.message()), HasSubstr("its workers are a, b"));
  after.Join("b");  // the worker was killed as well: its successor takes the interval over
  EXPECT_EQ(after.Decided(Reason::kReassigned), 1);
  EXPECT_EQ(after.AssignmentOf("b"), before.AssignmentOf("b"));
  after.Push("b", "second");
  ASSERT_TRUE(after.Last<StartCommit>());
  EXPECT_EQ(after.Last<StartCommit>()->contributions[1].push.worker, after.SenderOf("b").worker);
}

TEST(RestartStrict, ParticipantsDoNotOutliveTheSetting) {
  CoreScript before(RestartConfig(true));
  before.Join("a");
  before.Join("b");
  CoreScript after(RestartConfig(false), before.StateAfter(before.records().size()));
  after.Join("c");
  EXPECT_EQ(after.Decided(Reason::kJoined), 1);
}

TEST(RestartStrict, ParticipantsAreHowManyAreNeeded) {
  CoreScript before(RestartConfig(true));
  before.Join("a");
  before.Join("b");
  before.Push("a");
  before.Push("b");
  CoreConfig config = RestartConfig(true);
  config.min_workers = 3;
  CoreScript after(config, before.StateAfter(before.records().size()), before);
  for (const char* name : {"a", "b"}) after.Reconnect(name);
  after.Commit();
  EXPECT_EQ(after.Status().phase, RunPhase::kTraining);
}

TEST(Restart, ARunMadeShorterThanItsOpenRoundEndsWithIt) {
  CoreScript before(RestartConfig(false));
  before.Join("a");
  before.Join("b");
  for (int round = 0; round < 2; ++round) {
    before.Push("a");
    before.Push("b");
    before.Commit();
    if (round == 1) before.Checkpoint();
  }
  CoreConfig config = RestartConfig(false);
  config.interval.total_inner_steps = 10;  // the open round begins there
  CoreScript after(config, before.StateAfter(before.records().size()), before);
  for (const char* name : {"a", "b"}) after.Reconnect(name);
  after.Push("a");
  after.Push("b");
  after.Commit();
  EXPECT_EQ(after.Status().phase, RunPhase::kFinishing);
  EXPECT_EQ(after.Status().version, 3u);
}

TEST(RestartStrict, ASuccessorThatBecameReadyDuringTheShutdownTakesItsIntervalOver) {
  CoreScript before(RestartConfig(true));
  before.Join("a");
  before.Join("b");
  const Assignment interval = before.AssignmentOf("b");
  before.Hello("b");
  before.Say(PullOpened{.ticket = 900, .sender = before.SenderOf("b")});
  before.Say(ShutdownRequested{"SIGTERM"});
  before.Ready("b");
  EXPECT_EQ(before.Decided(Reason::kReassigned), 0);
  CoreScript after(RestartConfig(true), before.StateAfter(before.records().size()), before);
  after.Reconnect("a");
  after.Reconnect("b");
  EXPECT_EQ(after.Decided(Reason::kReassigned), 1);
  EXPECT_EQ(after.AssignmentOf("b"), interval);
}

TEST(RestartOfAnEvaluation, PartsOfBothLivesMakeThePoint) {
  CoreConfig config = RestartConfig(false);
  config.interval.total_inner_steps = 5;
  CoreScript before(config);
  before.Join("a");
  before.Join("b");
  before.Push("a");
  before.Push("b");
  before.Commit();
  EXPECT_EQ(before.Status().phase, RunPhase::kFinishing);
  before.Evaluate("a", 30, 10);

  CoreScript after(config, before.StateAfter(before.records().size()), before);
  EXPECT_EQ(after.Status().phase, RunPhase::kFinishing);
  after.Reconnect("a");
  EXPECT_FALSE(after.Last<SendAssignment>()) << "its part is in";
  after.Reconnect("b");
  ASSERT_TRUE(after.Last<SendAssignment>());
  after.Evaluate("b", 10, 10);
  ASSERT_TRUE(after.Last<EvaluationReady>());
  EXPECT_EQ(after.Last<EvaluationReady>()->point.loss, 2.0);
  after.Checkpoint();
  EXPECT_TRUE(after.Last<RunFinished>()->completed);

  CoreScript again(config, after.StateAfter(after.records().size()), after);
  for (const char* name : {"a", "b"}) again.Reconnect(name);
  EXPECT_FALSE(again.Last<SendAssignment>()) << "a run that is over is not evaluated again";
  ASSERT_TRUE(again.Last<RunFinished>());
  EXPECT_TRUE(again.Last<RunFinished>()->completed);

  CoreScript alone(config, after.StateAfter(after.records().size()));
  alone.RunTimers(absl::ZeroDuration());
  EXPECT_FALSE(alone.Last<RunFinished>()) << "its workers may not have heard that it is over";
  alone.RunTimers(config.lease + absl::Seconds(1));
  ASSERT_TRUE(alone.Last<RunFinished>());
  EXPECT_TRUE(alone.Last<RunFinished>()->completed);
}

TEST(Restart, DeltasAreKeptUntilTwoCheckpointsCoverThem) {
  CoreScript script(RestartConfig(false));
  script.Join("a");
  script.Join("b");
  for (int round = 0; round < 4; ++round) {
    script.Push("a", std::to_string(round));
    script.Push("b", std::to_string(round));
    script.Commit();
    script.Checkpoint();
    EXPECT_EQ(script.Last<DropSpooledBefore>().has_value(), round == 3);
  }
  ASSERT_TRUE(script.Last<DropSpooledBefore>());
  EXPECT_EQ(script.Last<DropSpooledBefore>()->round, 2u);
}

// A completed run that was started again: `a` has not heard that it is over.
class RestartOfACompletedRun : public ::testing::Test {
 protected:
  static CoreState Completed() {
    CoreState state;
    state.run.version = 5;
    state.run.inner_steps_done = 23;
    state.run.next_incarnation = 2;
    state.evaluated = true;
    state.members["a"].incarnation = 1;
    state.members["a"].ready = true;
    return state;
  }
  RestartOfACompletedRun() {
    script_.RunTimers(absl::ZeroDuration());
    script_.Checkpoint();
  }
  CoreScript script_{SmallConfig(), Completed()};
};

TEST_F(RestartOfACompletedRun, TellsTheWorkerThatComesBack) {
  EXPECT_FALSE(script_.Last<RunFinished>().has_value());
  script_.Say(HelloReceived{55, {SmallConfig().run_id, {"a", 1}}, SmallConfig().protocol_version});
  EXPECT_TRUE(script_.Last<SendDrain>()->run_done);
  EXPECT_TRUE(script_.Last<RunFinished>()->completed);
}

TEST_F(RestartOfACompletedRun, WaitsNoLongerThanALease) {
  script_.RunTimers(SmallConfig().lease - absl::Seconds(1));
  EXPECT_FALSE(script_.Last<RunFinished>().has_value());
  script_.RunTimers(absl::Seconds(2));
  EXPECT_TRUE(script_.Last<RunFinished>().has_value());
}

TEST_F(RestartOfACompletedRun, EndsAtOnceWhereItIsToldTo) {
  script_.Say(ShutdownRequested{"SIGTERM"});
  EXPECT_TRUE(script_.Last<RunFinished>().has_value());
}

}  // namespace
}  // namespace autoloco::server
