// Rounds of unequal workers: the deadline after a quorum, steps by speed, joiners in the middle, norms, eviction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/core_script.h"

namespace autoloco::server {
namespace {

using ::testing::HasSubstr;

CoreConfig ElasticConfig() {
  CoreConfig config = SmallConfig();
  config.interval.steps = 20;
  config.interval.total_inner_steps = 2000;
  config.interval.schedule.total_steps = 2000;
  config.start_workers = 4;
  config.deadline.quorum_share = 0.6;
  config.tokens_per_sample = 10;
  config.speed.tokens_per_step = 10;
  config.lease = absl::Seconds(1000);
  config.join_timeout = absl::Hours(100);
  return config;
}

class RoundMachineElasticTest : public ::testing::Test {
 protected:
  void Start(const CoreConfig& config, const std::vector<std::string>& names) {
    script_ = std::make_unique<CoreScript>(config);
    for (const std::string& name : names) script_->Join(name);
  }
  // A delta that took `step_seconds` a step.
  void Push(const std::string& name, double step_seconds = 0, double norm = 0) {
    const Assignment& assignment = script_->AssignmentOf(name);
    script_->report().step_seconds_mean = step_seconds;
    script_->report().tokens = std::uint64_t{assignment.inner_steps} * 10;
    script_->report().learning_rate_sum = 0.01 * assignment.inner_steps;
    const Ticket ticket = script_->OpenPush(name, assignment.round, "d", assignment.inner_steps);
    script_->Say(PushVerified{ticket, absl::OkStatus(), true, "", norm});
  }
  PushOutcome LastOutcome() { return script_->Last<AnswerPush>()->outcome; }
  // Rounds in which every worker moves by `velocity` per unit of learning rate.
  void Rounds(int count, const std::vector<std::string>& names, double velocity) {
    for (int i = 0; i < count; ++i) {
      CommitStats stats;
      stats.parameter_norm = stats.mean_delta_norm = 1;
      for (const std::string& name : names) {
        stats.delta_norm_by_worker[name] = velocity * 0.01 * script_->AssignmentOf(name).inner_steps;
        Push(name, 0, stats.delta_norm_by_worker[name]);
      }
      script_->Commit(stats);
    }
  }

  std::unique_ptr<CoreScript> script_;
};

TEST_F(RoundMachineElasticTest, AQuorumAndTheDeadlineCloseTheRound) {
  Start(ElasticConfig(), {"a", "b", "c", "d"});
  script_->Advance(absl::Seconds(10));
  Push("a");
  Push("b");
  script_->RunTimers(absl::Seconds(100));
  EXPECT_FALSE(script_->Last<StartCommit>().has_value());  // two of four are no quorum
  EXPECT_FALSE(script_->Status().deadline.has_value());
  EXPECT_EQ(script_->Status().quorum, 3u);
  Push("c");
  EXPECT_EQ(script_->Decided(Reason::kDeadline), 1);  // told
  // Arrivals 10, 10, 110: the spread is 0, so the floor of 1 s after the median.
  ASSERT_TRUE(script_->Status().deadline.has_value());
  EXPECT_THAT(script_->Status().deadline_reason, HasSubstr("median arrival 10.000 s of 3 deltas"));
  script_->RunTimers(absl::Seconds(1));
  ASSERT_TRUE(script_->Last<StartCommit>().has_value());
  EXPECT_EQ(script_->Last<StartCommit>()->contributions.size(), 3u);
  EXPECT_EQ(script_->Decided(Reason::kDeadline), 2);  // and passed
  script_->Commit();
  EXPECT_EQ(script_->Last<RoundCommitted>()->applied, 3u);
  EXPECT_EQ(script_->Last<RoundCommitted>()->expected, 4u);
}

TEST_F(RoundMachineElasticTest, TheRoundWaitsUntilItsDeadlineAndNoLonger) {
  Start(ElasticConfig(), {"a", "b", "c", "d"});
  script_->Advance(absl::Seconds(100));
  for (const char* name : {"a", "b", "c"}) Push(name);
  script_->RunTimers(absl::Seconds(0.9));
  EXPECT_FALSE(script_->Last<StartCommit>().has_value());
  script_->Say(WorkerHeard{script_->SenderOf("d")});
  script_->RunTimers(absl::Seconds(0.2));
  ASSERT_TRUE(script_->Last<StartCommit>().has_value());
  Push("d");
  EXPECT_EQ(LastOutcome(), PushOutcome::kLate);
}

// A server that was held up reads what has come before it looks at the clock.
TEST_F(RoundMachineElasticTest, OnlyTheTimerClosesByDeadline) {
  Start(ElasticConfig(), {"a", "b", "c", "d"});
  script_->Advance(absl::Seconds(10));
  for (const char* name : {"a", "b", "c"}) Push(name);
  script_->Advance(absl::Seconds(60));
  Push("d");
  EXPECT_EQ(LastOutcome(), PushOutcome::kAccepted);
  EXPECT_EQ(script_->Last<StartCommit>()->contributions.size(), 4u);
}

TEST_F(RoundMachineElasticTest, AStrictRunHasNoDeadline) {
  CoreConfig config = ElasticConfig();
  config.strict = true;
  config.min_workers = 4;
  Start(config, {"a", "b", "c", "d"});
  script_->Advance(absl::Seconds(10));
  for (const char* name : {"a", "b", "c"}) Push(name);
  script_->RunTimers(absl::Seconds(500));
  EXPECT_FALSE(script_->Last<StartCommit>().has_value());
}

TEST_F(RoundMachineElasticTest, StepsFollowSpeed) {
  Start(ElasticConfig(), {"a", "b", "c", "d"});
  script_->Advance(absl::Seconds(20));
  for (const char* name : {"a", "b", "c"}) Push(name, 1);
  Progress progress;
  progress.phase = WorkerPhase::kTraining;
  progress.steps_done = 5;
  progress.tokens_per_second = 2.5;  // 4 s a step
  script_->Say(ProgressReceived{script_->SessionOf("d"), script_->SenderOf("d"), progress});
  script_->RunTimers(absl::Seconds(5));
  script_->Commit();
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(script_->AssignmentOf(name).inner_steps, 20u);
  EXPECT_EQ(script_->AssignmentOf("d").inner_steps, 5u);
  EXPECT_EQ(script_->AssignmentOf("d").sample_count, 20u);
  EXPECT_EQ(script_->AssignmentOf("d").first_inner_step, 20u);
  EXPECT_EQ(script_->Status().workers[3].steps_target, 5u);
  EXPECT_EQ(script_->Status().workers[3].step_seconds, 4);
  // All finish together, and each counts by its work.
  script_->Advance(absl::Seconds(20));
  for (const char* name : {"a", "b", "c"}) Push(name, 1);
  Push("d", 4);
  EXPECT_EQ(LastOutcome(), PushOutcome::kAccepted);
  script_->Commit();
  EXPECT_NEAR(script_->Status().workers[3].share, 5.0 / 65, 1e-12);
  EXPECT_EQ(script_->AssignmentOf("d").first_inner_step, 40u);  // 20 a round, whatever a worker does
}

TEST_F(RoundMachineElasticTest, LeasesOfUnequalWorkersAreDisjoint) {
  Start(ElasticConfig(), {"a", "b", "c", "d"});
  script_->Advance(absl::Seconds(20));
  for (const char* name : {"a", "b", "c"}) Push(name, 1);
  script_->Advance(absl::Seconds(60));
  Push("d", 4);
  script_->Commit();
  std::uint64_t next = 4 * 20 * 4;  // after the first round's
  for (const char* name : {"a", "b", "c", "d"}) {
    EXPECT_EQ(script_->AssignmentOf(name).first_sample, next) << name;
    next += script_->AssignmentOf(name).sample_count;
  }
  EXPECT_EQ(next, 320u + 4 * 65);
}

TEST_F(RoundMachineElasticTest, AJoinerGetsWhatIsLeftOfTheRound) {
  CoreConfig config = ElasticConfig();
  config.start_workers = 2;
  Start(config, {"a", "b"});
  script_->Advance(absl::Seconds(20));
  Push("a", 1);
  Push("b", 1);
  script_->Commit();
  script_->Advance(absl::Seconds(8));
  script_->Join("c");
  EXPECT_EQ(script_->AssignmentOf("c").round, 1u);
  EXPECT_EQ(script_->AssignmentOf("c").inner_steps, 12u);
  EXPECT_EQ(script_->AssignmentOf("c").evaluation_parts, 0u);
  EXPECT_EQ(script_->Decided(Reason::kJoinsRound), 1);
  EXPECT_EQ(script_->Status().assigned, 3u);
  script_->Advance(absl::Seconds(11));
  script_->Join("d");  // one second is left
  EXPECT_EQ(script_->Decided(Reason::kNextRound), 1);
  EXPECT_EQ(script_->Status().assigned, 3u);
  script_->Advance(absl::Seconds(1));
  for (const char* name : {"a", "b", "c"}) Push(name, 1);
  ASSERT_EQ(script_->Last<StartCommit>()->contributions.size(), 3u);
  script_->Commit();
  EXPECT_EQ(script_->AssignmentOf("d").round, 2u);
  EXPECT_EQ(script_->AssignmentOf("d").inner_steps, 20u);
}

TEST_F(RoundMachineElasticTest, NobodyJoinsWhatNothingIsKnownOf) {
  CoreConfig config = ElasticConfig();
  config.start_workers = 2;
  Start(config, {"a", "b"});
  script_->Join("c");
  EXPECT_EQ(script_->Status().assigned, 2u);
  EXPECT_EQ(script_->Decided(Reason::kNextRound), 1);
}

TEST_F(RoundMachineElasticTest, ASuccessorStartsWithTheNextRound) {
  CoreConfig config = ElasticConfig();
  config.start_workers = 2;
  Start(config, {"a", "b"});
  Rounds(1, {"a", "b"}, 1);
  script_->Join("b");
  EXPECT_EQ(script_->Decided(Reason::kJoinsRound), 0);
  Push("a");  // nobody is waited for any more
  script_->Commit();
  EXPECT_EQ(script_->AssignmentOf("b").round, 2u);
}

TEST_F(RoundMachineElasticTest, AnOutlierDoesNotCountAndTheOthersDo) {
  Start(ElasticConfig(), {"a", "b", "c", "d"});
  Rounds(5, {"a", "b", "c", "d"}, 3);
  for (const char* name : {"a", "b", "c"}) Push(name, 0, 3 * 0.2);
  Push("d", 0, 16 * 0.2);
  EXPECT_EQ(LastOutcome(), PushOutcome::kNormOutlier);
  EXPECT_THAT(script_->Last<AnswerPush>()->reason, HasSubstr("above the limit 15"));
  EXPECT_EQ(script_->Last<StartCommit>()->contributions.size(), 3u);
  EXPECT_EQ(script_->Decided(Reason::kNormOutlier), 1);
}

TEST_F(RoundMachineElasticTest, TheImpossibleIsRefusedFromTheFirstRoundOn) {
  Start(ElasticConfig(), {"a", "b", "c", "d"});
  Push("a", 0, 1e38);
  EXPECT_EQ(LastOutcome(), PushOutcome::kNormOutlier);
  Push("b", 0, 1);
  EXPECT_EQ(LastOutcome(), PushOutcome::kAccepted);
}

TEST_F(RoundMachineElasticTest, AClippedOutlierCountsLess) {
  CoreConfig config = ElasticConfig();
  config.norm.clip = true;
  Start(config, {"a", "b", "c", "d"});
  Rounds(5, {"a", "b", "c", "d"}, 3);
  for (const char* name : {"a", "b", "c"}) Push(name, 0, 3 * 0.2);
  Push("d", 0, 60 * 0.2);
  EXPECT_EQ(LastOutcome(), PushOutcome::kAccepted);
  EXPECT_THAT(script_->Last<AnswerPush>()->reason, HasSubstr("it counts 0.25 times"));
  EXPECT_EQ(script_->Decided(Reason::kClipped), 1);
  const StartCommit commit = *script_->Last<StartCommit>();
  ASSERT_EQ(commit.contributions.size(), 4u);
  EXPECT_EQ(commit.contributions[0].weight, 0.25);
  EXPECT_NEAR(commit.contributions[3].weight, 0.0625, 1e-12);
}

// d misses round 0, delivers its delta in round 1, where it counts with half the weight of the others' work, and is
// assigned again in round 2.
TEST_F(RoundMachineElasticTest, ALateDeltaCountsInALaterRoundWithLess) {
  CoreConfig config = ElasticConfig();
  config.late.apply = true;
  Start(config, {"a", "b", "c", "d"});
  script_->Advance(absl::Seconds(10));
  for (const char* name : {"a", "b", "c"}) Push(name);
  script_->RunTimers(absl::Seconds(1));
  Push("d");  // while the round is being committed: to be sent again
  EXPECT_EQ(script_->Last<RefusePush>()->status.code(), absl::StatusCode::kUnavailable);
  script_->Commit();
  EXPECT_EQ(script_->AssignmentOf("a").round, 1u);
  EXPECT_EQ(script_->AssignmentOf("d").round, 0u);  // goes on
  EXPECT_EQ(script_->Status().assigned, 4u);
  Push("d");
  EXPECT_EQ(LastOutcome(), PushOutcome::kAccepted);
  EXPECT_THAT(script_->Last<AnswerPush>()->reason, HasSubstr("late: it counts in round 1"));
  for (const char* name : {"a", "b", "c"}) Push(name);
  const StartCommit commit = *script_->Last<StartCommit>();
  ASSERT_EQ(commit.contributions.size(), 4u);
  EXPECT_EQ(commit.contributions[3].push.round, 0u);
  EXPECT_NEAR(commit.contributions[0].weight, 1 / 3.5, 1e-12);
  EXPECT_NEAR(commit.contributions[3].weight, 0.5 / 3.5, 1e-12);
  script_->Commit();
  EXPECT_EQ(script_->AssignmentOf("d").round, 2u);
  Push("d");
  EXPECT_EQ(LastOutcome(), PushOutcome::kAccepted);
}

TEST_F(RoundMachineElasticTest, NobodyWaitsForLateWorkAndItEndsAtItsLimit) {
  CoreConfig config = ElasticConfig();
  config.late.apply = true;
  Start(config, {"a", "b", "c", "d"});
  script_->Advance(absl::Seconds(10));
  for (const char* name : {"a", "b", "c"}) Push(name);
  script_->RunTimers(absl::Seconds(1));
  script_->Commit();
  for (int round = 1; round <= 2; ++round) {
    for (const char* name : {"a", "b", "c"}) Push(name);  // closes at once
    script_->Commit();
    EXPECT_EQ(script_->Last<RoundCommitted>()->applied, 3u);
  }
  EXPECT_EQ(script_->AssignmentOf("d").round, 3u);  // the old work would be three versions late
  script_->Say(PushVerified{script_->OpenPush("d", 0, "d", 20), absl::OkStatus(), true, ""});
  EXPECT_EQ(LastOutcome(), PushOutcome::kStale);
}

TEST_F(RoundMachineElasticTest, ALateDeltaThatWasOnItsWayWhenItsWorkerLeftIsBookedAsApplied) {
  CoreConfig config = ElasticConfig();
  config.late.apply = true;
  Start(config, {"a", "b", "c", "d"});
  script_->Advance(absl::Seconds(10));
  for (const char* name : {"a", "b", "c"}) Push(name);
  script_->RunTimers(absl::Seconds(1));
  script_->Commit();
  const Ticket ticket = script_->OpenPush("d", 0, "d", 20);
  script_->Say(EvictAsked{900, "d", false});
  script_->Say(PushVerified{ticket, absl::OkStatus(), true, ""});
  EXPECT_EQ(LastOutcome(), PushOutcome::kAccepted);
  for (const char* name : {"a", "b", "c"}) Push(name);
  script_->Commit();
  EXPECT_EQ(script_->Last<RoundCommitted>()->applied, 4u);
  EXPECT_EQ(script_->Status().ledger.applied, 7u * 200);
  EXPECT_EQ(script_->Status().ledger.lost, 0u);
}

TEST_F(RoundMachineElasticTest, LateWorkOfALostWorkerIsGone) {
  CoreConfig config = ElasticConfig();
  config.late.apply = true;
  Start(config, {"a", "b", "c", "d"});
  script_->Advance(absl::Seconds(10));
  for (const char* name : {"a", "b", "c"}) Push(name);
  script_->RunTimers(absl::Seconds(1));
  script_->Commit();
  script_->Join("d");  // a new life
  for (const char* name : {"a", "b", "c"}) Push(name);
  script_->Commit();
  EXPECT_EQ(script_->AssignmentOf("d").round, 2u);
}

TEST_F(RoundMachineElasticTest, AnEvictedWorkerIsNotWaitedForAndStaysOut) {
  Start(ElasticConfig(), {"a", "b", "c", "d"});
  Push("a");
  script_->Say(EvictAsked{900, "a", false});
  for (const char* name : {"b", "c"}) Push(name);
  script_->Say(EvictAsked{901, "d", false});
  EXPECT_TRUE(script_->Last<AnswerEvict>()->status.ok());
  ASSERT_TRUE(script_->Last<StartCommit>().has_value());
  EXPECT_EQ(script_->Last<StartCommit>()->contributions.size(), 3u);  // what a had delivered counts
  EXPECT_EQ(script_->All<CloseSession>().size(), 2u);
  EXPECT_EQ(script_->Last<CloseSession>()->status.code(), absl::StatusCode::kPermissionDenied);
  script_->Commit();
  script_->RunTimers(absl::Hours(3));  // it is not forgotten either
  script_->Clear();
  script_->Hello("d");
  ASSERT_TRUE(script_->Last<CloseSession>().has_value());
  EXPECT_EQ(script_->Last<CloseSession>()->status.code(), absl::StatusCode::kPermissionDenied);
  script_->Say(EvictAsked{902, "d", true});
  EXPECT_TRUE(script_->Last<AnswerEvict>()->status.ok());
  script_->Clear();
  script_->Hello("d");
  EXPECT_TRUE(script_->Last<SendWelcome>().has_value());
}

TEST_F(RoundMachineElasticTest, EvictionNeedsAName) {
  Start(ElasticConfig(), {"a", "b", "c", "d"});
  script_->Say(EvictAsked{900, "nobody", false});
  EXPECT_EQ(script_->Last<AnswerEvict>()->status.code(), absl::StatusCode::kNotFound);
  script_->Say(EvictAsked{901, "a", true});
  EXPECT_EQ(script_->Last<AnswerEvict>()->status.code(), absl::StatusCode::kNotFound);
}

TEST_F(RoundMachineElasticTest, SpeedsSurviveARestart) {
  Start(ElasticConfig(), {"a", "b", "c", "d"});
  script_->Advance(absl::Seconds(20));
  for (const char* name : {"a", "b", "c"}) Push(name, 1);
  script_->Advance(absl::Seconds(60));
  Push("d", 4);
  script_->Commit();
  ASSERT_EQ(script_->AssignmentOf("d").inner_steps, 5u);
  for (const char* name : {"a", "b", "c", "d"}) Push(name, 0);  // says nothing of speed
  ASSERT_TRUE(script_->CommitAsked());
  CoreScript after(ElasticConfig(), script_->StateAfter(script_->records().size()), *script_);
  EXPECT_EQ(after.Status().workers[3].step_seconds, 4);
  for (const char* name : {"a", "b", "c", "d"}) after.Reconnect(name);
  after.Commit();
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(after.AssignmentOf(name).inner_steps, 20u);
  EXPECT_EQ(after.AssignmentOf("d").inner_steps, 5u);
  // Nor does a new life of the worker begin without.
  after.Hello("d");
  after.Ready("d");
  EXPECT_EQ(after.machine().DurableState().members.at("d").step_seconds, 4);
}

// What came before the restart has no time any more: those that reconnect are not cut off by it.
TEST_F(RoundMachineElasticTest, ARestoredRoundHasNoLearnedDeadline) {
  Start(ElasticConfig(), {"a", "b", "c", "d"});
  script_->Advance(absl::Seconds(10));
  for (const char* name : {"a", "b", "c"}) Push(name);
  CoreScript after(ElasticConfig(), script_->StateAfter(script_->records().size()));
  after.RunTimers(absl::Seconds(60));
  EXPECT_FALSE(after.Last<StartCommit>().has_value());
  EXPECT_FALSE(after.Status().deadline.has_value());
}

}  // namespace
}  // namespace autoloco::server
