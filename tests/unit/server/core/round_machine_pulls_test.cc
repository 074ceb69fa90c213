#include <gtest/gtest.h>

#include <string>

#include "tests/support/core_script.h"

namespace autoloco::server {
namespace {

CoreConfig LossyConfig() {
  CoreConfig config = SmallConfig();
  config.method.broadcast.codec = 5;
  config.broadcasts_kept = 2;
  return config;
}

class Pulls : public ::testing::Test {
 protected:
  explicit Pulls(const CoreConfig& config = SmallConfig()) : script_(config) {
    script_.Join("a");
    script_.Join("b");
  }

  void CloseRound() {
    script_.Push("a");
    script_.Push("b");
  }
  void RunRounds(int count) {
    for (int i = 0; i < count; ++i) {
      CloseRound();
      script_.Commit();
    }
  }
  // A pull of a worker that holds this.
  void Pull(Version version, const std::string& digest, bool mixed = false) {
    script_.Say(PullOpened{.ticket = ++ticket_,
                           .sender = script_.SenderOf("a"),
                           .held_version = version,
                           .held_digest = digest,
                           .held_mixed = mixed});
  }
  void ExpectServed(PullForm form, Version version, const std::string& view_digest) {
    const auto served = script_.Last<ServePull>();
    ASSERT_TRUE(served);
    EXPECT_EQ(served->ticket, ticket_);
    EXPECT_STREQ(PullFormName(served->form), PullFormName(form));
    EXPECT_EQ(served->version, version);
    EXPECT_EQ(served->view_digest, view_digest);
  }

  CoreScript script_;
  Ticket ticket_ = 900;
};

class LossyPulls : public Pulls {
 protected:
  LossyPulls() : Pulls(LossyConfig()) {}
};

TEST_F(Pulls, WithoutAViewTheCurrentVersionIsSentWhole) {
  Pull(0, "");
  ExpectServed(PullForm::kFull, 0, "");
  RunRounds(1);
  Pull(0, "");
  ExpectServed(PullForm::kFull, 1, "view 1");
  EXPECT_EQ(script_.Status().workers[0].base_version, 1u);
  Pull(1, "view 1");
  ExpectServed(PullForm::kNothing, 1, "view 1");
}

TEST_F(Pulls, AStrangerIsRefused) {
  Sender stranger = script_.SenderOf("a");
  stranger.worker.incarnation = 77;
  script_.Say(PullOpened{.ticket = 10, .sender = stranger});
  ASSERT_TRUE(script_.Last<RefusePull>());
  EXPECT_EQ(script_.Last<RefusePull>()->ticket, 10u);
  EXPECT_EQ(script_.Last<RefusePull>()->status.code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(Pulls, WorkersHearTheDigestsOfEachVersion) {
  RunRounds(1);
  EXPECT_EQ(script_.Last<SendRoundClosed>()->params_digest, "digest");
  EXPECT_EQ(script_.Last<SendRoundClosed>()->view_digest, "view 1");
  script_.Hello("c");
  EXPECT_EQ(script_.Last<SendWelcome>()->view_digest, "view 1");
  EXPECT_EQ(script_.machine().History().back().params_digest, "digest");
  EXPECT_EQ(script_.machine().History().back().view_digest, "view 1");
}

TEST_F(LossyPulls, TheDecisionSaysHowTheRoundIsCommitted) {
  CloseRound();
  EXPECT_EQ(script_.Last<StartCommit>()->method, LossyConfig().method);
}

TEST_F(LossyPulls, ABroadcastAVersionAndTheLiveViewBeyond) {
  RunRounds(3);
  Pull(2, "view 2");
  ExpectServed(PullForm::kBroadcast, 3, "view 3");
  EXPECT_EQ(script_.Status().workers[0].base_version, 3u);
  Pull(1, "view 1");
  ExpectServed(PullForm::kBroadcast, 2, "view 2");
  Pull(0, "of the start");
  ExpectServed(PullForm::kLive, 3, "");  // versions 2 and 3 are kept
  EXPECT_EQ(script_.Decided(Reason::kViewMismatch), 0);
}

// No round made it, and yet the first broadcast is for those who hold it.
TEST(LossyPullsOfANewRun, WhoHoldsTheFirstVersionFollowsByBroadcast) {
  CoreState start;
  start.view_digest = "view 0";
  CoreScript script(LossyConfig(), start);
  script.Join("a");
  script.Join("b");
  for (const char* name : {"a", "b"}) script.Push(name);
  script.Commit();
  script.Say(PullOpened{.ticket = 1, .sender = script.SenderOf("a"), .held_version = 0, .held_digest = "view 0"});
  EXPECT_EQ(script.Last<ServePull>()->form, PullForm::kBroadcast);
  EXPECT_EQ(script.Last<ServePull>()->version, 1u);
  script.Say(PullOpened{.ticket = 2, .sender = script.SenderOf("b"), .held_version = 0, .held_digest = "other"});
  EXPECT_EQ(script.Last<ServePull>()->form, PullForm::kLive);
  EXPECT_EQ(script.Decided(Reason::kViewMismatch), 1);
}

TEST_F(LossyPulls, OnlyTheHeaderMovesNoBase) {
  RunRounds(1);
  script_.Say(PullOpened{.ticket = 10, .sender = script_.SenderOf("a"), .header_only = true});
  EXPECT_TRUE(script_.Last<ServePull>()->header_only);
  EXPECT_EQ(script_.Status().workers[0].base_version, 0u);
}

TEST_F(LossyPulls, APartKeepsItsBlocks) {
  RunRounds(1);
  script_.Say(PullOpened{.ticket = 10, .sender = script_.SenderOf("a"), .part = {PullForm::kBroadcast, 1, 2, 3}});
  EXPECT_EQ(script_.Last<ServePull>()->first_block, 2u);
  EXPECT_EQ(script_.Last<ServePull>()->block_count, 3u);
  script_.Say(PullOpened{.ticket = 11, .sender = script_.SenderOf("a"), .part = {PullForm::kBroadcast, 2, 2, 3}});
  EXPECT_EQ(script_.Last<RefusePull>()->status.code(), absl::StatusCode::kAborted);
}

TEST_F(LossyPulls, OtherValuesThanTheServersAreCountedAndReplaced) {
  RunRounds(2);
  Pull(1, "other");
  ExpectServed(PullForm::kLive, 2, "");
  EXPECT_EQ(script_.Decided(Reason::kViewMismatch), 1);
}

TEST_F(LossyPulls, AMismatchIsCountedOnceForAllStreamsOfAPull) {
  RunRounds(2);
  for (const std::uint64_t first : {2, 0, 4}) {
    script_.Say(PullOpened{.ticket = ++ticket_,
                           .sender = script_.SenderOf("a"),
                           .held_version = 1,
                           .held_digest = "other",
                           .part = {.first_block = first, .block_count = 2}});
    ExpectServed(PullForm::kLive, 2, "");
  }
  EXPECT_EQ(script_.Decided(Reason::kViewMismatch), 1);
}

TEST_F(LossyPulls, WhatWasReadInTheMiddleOfACommitWaitsForItsEnd) {
  RunRounds(1);
  CloseRound();
  ASSERT_EQ(script_.Status().phase, RunPhase::kCommitting);
  script_.Clear();
  Pull(1, "", true);
  Pull(2, "view 2");
  EXPECT_FALSE(script_.Last<ServePull>());
  script_.Commit();
  const auto served = script_.All<ServePull>();
  ASSERT_EQ(served.size(), 2u);
  EXPECT_EQ(served[0].ticket, 901u);
  EXPECT_EQ(served[0].form, PullForm::kBroadcast);
  EXPECT_EQ(served[0].version, 2u);
  EXPECT_EQ(served[1].ticket, 902u);
  EXPECT_EQ(served[1].form, PullForm::kNothing);
}

TEST_F(LossyPulls, AWorkerThatWasReplacedMeanwhileIsRefusedAtTheEnd) {
  CloseRound();
  Pull(0, "", true);
  script_.Join("a");  // another life
  script_.Clear();
  script_.Commit();
  EXPECT_FALSE(script_.Last<ServePull>());
  ASSERT_TRUE(script_.Last<RefusePull>());
  EXPECT_EQ(script_.Last<RefusePull>()->ticket, 901u);
  EXPECT_EQ(script_.Last<RefusePull>()->status.code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(LossyPulls, ARestartedServerKnowsTheDigestsAndOffersWhatItsShellHas) {
  RunRounds(3);
  CoreConfig config = LossyConfig();
  config.broadcasts_kept = 16;
  config.first_broadcast = 3;
  CoreScript after(config, script_.StateAfter(script_.records().size()), script_);
  after.Reconnect("a");
  EXPECT_EQ(after.Last<SendWelcome>()->view_digest, "view 3");
  after.Say(PullOpened{.ticket = 1, .sender = after.SenderOf("a"), .held_version = 2, .held_digest = "view 2"});
  EXPECT_EQ(after.Last<ServePull>()->form, PullForm::kBroadcast);
  after.Say(PullOpened{.ticket = 2, .sender = after.SenderOf("a"), .held_version = 1, .held_digest = "view 1"});
  EXPECT_EQ(after.Last<ServePull>()->form, PullForm::kLive);
  EXPECT_EQ(after.Decided(Reason::kViewMismatch), 0);
}

}  // namespace
}  // namespace autoloco::server
