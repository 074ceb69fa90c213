// Sessions: who is let in, who is fenced out, what a reconnected worker is told again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/core_script.h"

namespace autoloco::server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string LastRefusal(const CoreScript& script) {
  const auto close = script.Last<CloseSession>();
  return close ? std::string(close->status.message()) : "nothing was refused";
}

TEST(Sessions, AnotherProtocolVersionIsRefused) {
  CoreScript script;
  script.Say(HelloReceived{9, {"", {"a", 0}}, 2});
  EXPECT_EQ(script.Last<CloseSession>()->status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(LastRefusal(script), "protocol version: the server speaks 1, the worker 2");
  EXPECT_EQ(script.Status().alive, 0u);
}

TEST(Sessions, AnotherRunIsRefused) {
  CoreScript script;
  script.Say(HelloReceived{9, {"run-2", {"a", 0}}, 1});
  EXPECT_EQ(LastRefusal(script), "run id: this is run run-1, the worker wants run-2");
}

TEST(Sessions, ABadNameIsRefused) {
  CoreScript script;
  for (const std::string& name : {std::string(), std::string("a\"b\n{}"), std::string(65, 'x')}) {
    script.Clear();
    script.Say(HelloReceived{9, {"", {name, 0}}, 1});
    EXPECT_EQ(script.Last<CloseSession>()->status.code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(Sessions, MoreThanMaxWorkersAreToldToComeBack) {
  CoreConfig config = SmallConfig();
  config.max_workers = 1;
  CoreScript script(config);
  script.Join("a");
  script.Hello("b");
  EXPECT_EQ(script.Last<CloseSession>()->status.code(), absl::StatusCode::kResourceExhausted);
}

TEST(Sessions, AnotherLayoutIsRefusedByItsFirstDifference) {
  CoreScript script;
  const Ticket session = script.Hello("a");
  const Layout other = *Layout::Make({{"a.weight", {2, 3}}, {"b.weight", {3}}});
  script.Say(ReadyReceived{session, script.SenderOf("a"), other, 0, 1000, 7});
  EXPECT_EQ(script.Last<CloseSession>()->status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(LastRefusal(script), HasSubstr("b.weight"));
  EXPECT_EQ(script.Status().alive, 0u);
}

TEST(Sessions, SharedDataMustBeTheSame) {
  CoreScript script;
  script.Join("a");
  const Ticket session = script.Hello("b");
  script.Say(ReadyReceived{session, script.SenderOf("b"), SmallLayout(), 0, 1000, 8});
  EXPECT_THAT(LastRefusal(script), StartsWith("data: workers share one dataset"));
}

TEST(Sessions, AWorkerWithWrongDataThatLeftDoesNotDecideForTheRun) {
  CoreScript script;
  const Ticket wrong = script.Hello("a");
  script.Say(ReadyReceived{wrong, script.SenderOf("a"), SmallLayout(), 0, 50, 9});
  script.Say(GoodbyeReceived{wrong, script.SenderOf("a"), ""});
  script.Join("a");
  script.Join("b");
  EXPECT_EQ(script.Status().phase, RunPhase::kTraining);
}

TEST(Sessions, OwnDataMayDiffer) {
  CoreConfig config = SmallConfig();
  config.shared_data = false;
  CoreScript script(config);
  script.Join("a");
  const Ticket session = script.Hello("b");
  script.Say(ReadyReceived{session, script.SenderOf("b"), SmallLayout(), 0, 50, 8});
  EXPECT_EQ(script.Status().phase, RunPhase::kTraining);
}

TEST(Sessions, AMessageUnderAnotherIdentityEndsTheSession) {
  CoreScript script;
  const Ticket session = script.Join("a");
  Sender liar = script.SenderOf("a");
  liar.worker.name = "b";
  script.Say(ProgressReceived{session, liar, {}});
  EXPECT_EQ(script.Last<CloseSession>()->status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(LastRefusal(script), HasSubstr("this session is a#1"));
}

TEST(Sessions, ASecondHelloIsRefused) {
  CoreScript script;
  const Ticket session = script.Join("a");
  script.Say(HelloReceived{session, {"", {"a", 0}}, 1});
  EXPECT_EQ(script.Last<CloseSession>()->status.code(), absl::StatusCode::kInvalidArgument);
}

TEST(Sessions, ASecondLifeFencesTheFirst) {
  CoreScript script;
  const Ticket first = script.Join("a");
  const Sender old = script.SenderOf("a");
  script.Join("b");
  script.Join("a");
  EXPECT_EQ(script.Decided(Reason::kReplaced), 1);
  EXPECT_EQ(script.All<CloseSession>()[0].session, first);
  EXPECT_THAT(LastRefusal(script), StartsWith("incarnation replaced"));
  script.Clear();
  script.Say(HelloReceived{50, old, 1});
  EXPECT_THAT(LastRefusal(script), StartsWith("incarnation replaced"));
}

TEST(Sessions, AHelloThatWasHeldUpFencesNobodyOut) {
  CoreScript script;
  const Ticket session = script.Join("a");
  script.Clear();
  script.Say(HelloReceived{60, {"", {"a", 0}}, 1});
  ASSERT_TRUE(script.Last<SendWelcome>());
  EXPECT_EQ(script.Last<SendWelcome>()->incarnation, 2u);
  EXPECT_EQ(script.Decided(Reason::kReplaced), 0);
  script.Say(ProgressReceived{session, script.SenderOf("a"), {}});
  script.Say(SessionClosed{60});
  EXPECT_FALSE(script.Last<CloseSession>());
  EXPECT_EQ(script.Status().workers[0].worker.incarnation, 1u);
}

TEST(Sessions, TheFirstWordOfANewLifeFencesTheOldOneOut) {
  CoreScript script;
  const Ticket old = script.Join("a");
  script.Clear();
  script.Say(HelloReceived{60, {"", {"a", 0}}, 1});
  script.Say(HelloReceived{61, {"", {"a", 0}}, 1});
  PullOpened pull{.ticket = 70, .sender = script.SenderOf("a")};
  pull.sender.worker.incarnation = 3;
  script.Say(pull);
  EXPECT_TRUE(script.Last<ServePull>());
  EXPECT_EQ(script.Decided(Reason::kReplaced), 1);
  ASSERT_EQ(script.All<CloseSession>().size(), 2u);  // the claim before it, and the life
  EXPECT_EQ(script.All<CloseSession>()[0].session, 60u);
  EXPECT_EQ(script.All<CloseSession>()[1].session, old);
  EXPECT_EQ(script.Status().workers[0].worker.incarnation, 3u);
}

TEST(Sessions, AReconnectWithinTheLeaseGetsItsAssignmentAgain) {
  CoreScript script;
  script.Join("a");
  script.Join("b");
  script.Say(SessionClosed{script.SessionOf("b")});
  EXPECT_EQ(script.Status().workers[1].state, WorkerState::kStale);
  script.Clear();
  script.Say(HelloReceived{50, script.SenderOf("b"), 1});
  EXPECT_EQ(script.Decided(Reason::kReconnected), 1);
  ASSERT_TRUE(script.Last<SendAssignment>());
  EXPECT_EQ(script.Last<SendAssignment>()->session, 50u);
  EXPECT_EQ(script.Last<SendAssignment>()->assignment.first_sample, 20u);
}

TEST(Sessions, AReconnectAfterDeliveryIsNotAssignedAgain) {
  CoreScript script;
  script.Join("a");
  script.Join("b");
  script.Push("b");
  script.Say(SessionClosed{script.SessionOf("b")});
  script.Clear();
  script.Say(HelloReceived{50, script.SenderOf("b"), 1});
  EXPECT_TRUE(script.Last<SendWelcome>());
  EXPECT_FALSE(script.Last<SendAssignment>());
}

TEST(Sessions, AReconnectAfterTheLeaseJoinsAnew) {
  CoreScript script;
  script.Join("a");
  script.Say(SessionClosed{script.SessionOf("a")});
  script.RunTimers(absl::Seconds(20));
  EXPECT_EQ(script.Status().workers[0].state, WorkerState::kLeft);
  script.Say(HelloReceived{50, script.SenderOf("a"), 1});
  EXPECT_THAT(LastRefusal(script), StartsWith("incarnation expired"));
  const Incarnation before = script.SenderOf("a").worker.incarnation;
  script.Join("a");
  EXPECT_GT(script.SenderOf("a").worker.incarnation, before);
  EXPECT_EQ(script.Status().alive, 1u);
}

// ------------------------------------------------------------------------------------------- deltas of an earlier life

// b is killed in round 0 after a has delivered, and is back with the delta that it had saved, as an earlier life of it.
class HeldDeltas : public testing::Test {
 protected:
  explicit HeldDeltas(const CoreConfig& config = SmallConfig()) : script_(config) {
    script_.Join("a");
    script_.Join("b");
    former_ = script_.SenderOf("b");
    script_.Push("a");
    script_.Say(SessionClosed{script_.SessionOf("b")});
    script_.Clear();
  }
  void Hello(Round round = 0, const std::string& run_id = "run-1", const std::string& digest = "kept") {
    HelloReceived hello{50, {"", {"b", 0}}, 1};
    hello.held = HeldDelta{run_id, former_.worker.incarnation, round, 0, digest};
    script_.Say(hello);
    script_.Say(ProgressReceived{50, Now(), {}});  // its first word
  }
  Sender Now() const { return {"run-1", {"b", script_.Last<SendWelcome>()->incarnation}}; }
  PushOpened Header() const {
    PushOpened push;
    push.ticket = 70;
    push.sender = former_;
    push.payload_digest = "kept";
    push.payload_bytes = 100;
    push.layout_hash = SmallLayout().hash();
    push.report.inner_steps = 5;
    push.report.tokens = 10;
    return push;
  }
  void Ready() { script_.Say(ReadyReceived{50, Now(), SmallLayout(), 0, 1000, 7}); }
  CoreScript script_;
  Sender former_;
};

TEST_F(HeldDeltas, AreTakenUnderTheirKeyWhileTheRoundIsOpen) {
  Hello();
  ASSERT_TRUE(script_.Last<SendWelcome>());
  EXPECT_TRUE(script_.Last<SendWelcome>()->send_held);
  EXPECT_GT(script_.Last<SendWelcome>()->incarnation, former_.worker.incarnation);
  EXPECT_FALSE(script_.Last<StartCommit>()) << "the round waits for it";
  script_.RunTimers(absl::Seconds(10));
  EXPECT_FALSE(script_.Last<StartCommit>()) << "its worker is there again";
  script_.Say(Header());
  ASSERT_TRUE(script_.Last<AdmitPush>());
  script_.Say(PushVerified{70, absl::OkStatus(), true, ""});
  EXPECT_EQ(script_.Last<AnswerPush>()->outcome, PushOutcome::kAccepted);
  ASSERT_TRUE(script_.Last<StartCommit>());
  EXPECT_EQ(script_.Last<StartCommit>()->contributions.size(), 2u);
}

TEST_F(HeldDeltas, AreAnsweredAgainWhenTheAnswerWasLost) {
  Hello();
  script_.Say(Header());
  script_.Say(PushVerified{70, absl::OkStatus(), true, ""});
  script_.Say(PushStatusAsked{71, former_, 0, 0});
  EXPECT_TRUE(script_.Last<AnswerPushStatus>()->known);
  PushOpened again = Header();
  again.ticket = 72;
  script_.Say(again);
  EXPECT_TRUE(script_.Last<AnswerPush>()->replayed);
}

TEST_F(HeldDeltas, ThatCannotCountAreNotAskedFor) {
  Hello(0, "run-0");
  EXPECT_THAT(script_.Last<SendWelcome>()->held_reason, HasSubstr("run-0"));
  EXPECT_FALSE(script_.Last<SendWelcome>()->send_held);
  EXPECT_TRUE(script_.Last<StartCommit>()) << "nobody is left to wait for";
}

TEST_F(HeldDeltas, OfAnotherRoundAreNotAskedFor) {
  Hello(3);
  EXPECT_THAT(script_.Last<SendWelcome>()->held_reason, HasSubstr("round 3 is not open"));
  EXPECT_EQ(script_.Last<SendWelcome>()->held_outcome, std::nullopt);
  EXPECT_FALSE(script_.Last<SendWelcome>()->send_held);
}

TEST_F(HeldDeltas, AreNotTakenWithoutBeingNamed) {
  const Ticket session = script_.Hello("b");
  script_.Say(ProgressReceived{session, Now(), {}});
  script_.Say(Header());
  EXPECT_THAT(std::string(script_.Last<RefusePush>()->status.message()), StartsWith("incarnation replaced"));
}

TEST_F(HeldDeltas, AreGivenUpWithReady) {
  Hello();
  Ready();
  EXPECT_TRUE(script_.Last<StartCommit>());
  script_.Say(Header());
  EXPECT_FALSE(script_.Last<AdmitPush>());
}

TEST_F(HeldDeltas, ArrivedBeforeTheWorkerDied) {
  script_.Say(HelloReceived{50, former_, 1});  // it was not dead yet
  script_.Say(Header());
  script_.Say(PushVerified{70, absl::OkStatus(), true, ""});
  script_.Clear();
  HelloReceived hello{51, {"", {"b", 0}}, 1};
  hello.held = HeldDelta{"run-1", former_.worker.incarnation, 0, 0, "kept"};
  script_.Say(hello);
  EXPECT_FALSE(script_.Last<SendWelcome>()->send_held);
  EXPECT_THAT(script_.Last<SendWelcome>()->held_reason, HasSubstr("accepted"));
  EXPECT_EQ(script_.Last<SendWelcome>()->held_outcome, PushOutcome::kAccepted);
}

TEST_F(HeldDeltas, AreNamedAgainAfterABrokenSession) {
  Hello();
  const Sender now{"run-1", {"b", script_.Last<SendWelcome>()->incarnation}};
  script_.Say(SessionClosed{50});
  HelloReceived hello{51, now, 1};
  hello.held = HeldDelta{"run-1", former_.worker.incarnation, 0, 0, "kept"};
  script_.Say(hello);
  EXPECT_TRUE(script_.Last<SendWelcome>()->send_held);
  EXPECT_EQ(script_.Last<SendWelcome>()->incarnation, now.worker.incarnation);
}

CoreConfig StrictConfig() {
  CoreConfig config = SmallConfig();
  config.strict = true;
  config.min_workers = 2;
  return config;
}

class StrictHeldDeltas : public HeldDeltas {
 protected:
  StrictHeldDeltas() : HeldDeltas(StrictConfig()) {}
};

TEST_F(StrictHeldDeltas, AreNotTrainedAgain) {
  Hello();
  script_.Say(Header());
  script_.Say(PushVerified{70, absl::OkStatus(), true, ""});
  Ready();
  EXPECT_EQ(script_.Decided(Reason::kReassigned), 0);
  EXPECT_TRUE(script_.Last<StartCommit>());
}

TEST_F(StrictHeldDeltas, ThatNeverCameAreTrainedAgain) {
  Hello();
  Ready();
  EXPECT_EQ(script_.Decided(Reason::kReassigned), 1);
}

TEST(Sessions, AServerThatWasHeldUpReadsBeforeItExpires) {
  CoreScript script;
  script.Join("a");
  script.Join("b");
  script.Advance(absl::Seconds(60));
  for (const char* name : {"a", "b"}) {
    script.Say(ProgressReceived{script.SessionOf(name), script.SenderOf(name), {}});
  }
  script.Say(TimerFired{});
  EXPECT_EQ(script.Decided(Reason::kLeaseExpired), 0);
  EXPECT_EQ(script.Status().alive, 2u);
}

TEST(Sessions, TransfersRenewTheLease) {
  CoreScript script;
  script.Join("a");
  script.RunTimers(absl::Seconds(10));
  script.Say(WorkerHeard{script.SenderOf("a")});
  script.RunTimers(absl::Seconds(10));
  EXPECT_EQ(script.Status().alive, 1u);
}

TEST(Sessions, AWorkerThatLeftIsForgottenAfterAnHour) {
  CoreConfig config = SmallConfig();
  config.join_timeout = absl::Hours(10);
  CoreScript script(config);
  script.Join("a");
  script.Say(GoodbyeReceived{script.SessionOf("a"), script.SenderOf("a"), "done"});
  script.RunTimers(absl::Minutes(59));
  ASSERT_EQ(script.Status().workers.size(), 1u);
  EXPECT_EQ(script.Status().workers[0].reason, "goodbye: done");
  script.RunTimers(absl::Minutes(2));
  EXPECT_EQ(script.Decided(Reason::kForgotten), 1);
  EXPECT_TRUE(script.Status().workers.empty());
}

TEST(Sessions, AServerThatLostTheRunTurnsItsWorkersAway) {
  CoreConfig config = SmallConfig();
  config.first_incarnation = 1'000'001;
  for (const bool began_anew : {false, true}) {
    config.began_anew = began_anew;
    CoreScript script(config);
    script.Say(HelloReceived{77, {config.run_id, {"a", 12}}, config.protocol_version});
    const std::string message(script.Last<CloseSession>()->status.message());
    EXPECT_EQ(script.Last<CloseSession>()->status.code(), absl::StatusCode::kFailedPrecondition);
    const char* const why = began_anew ? "run lost: " : "incarnation expired: ";
    EXPECT_THAT(message, ::testing::StartsWith(why));
    PushOpened push;
    push.sender = {config.run_id, {"a", 12}};
    script.Say(push);
    EXPECT_THAT(std::string(script.Last<RefusePush>()->status.message()), ::testing::StartsWith(why));
    script.Join("a");  // a worker that was started again holds nothing
    EXPECT_EQ(script.Status().alive, 1u);
    script.Say(SessionClosed{script.SessionOf("a")});
    script.Say(HelloReceived{78, script.SenderOf("a"), config.protocol_version});
    EXPECT_EQ(script.Last<SendWelcome>()->session, 78u);
  }
}

}  // namespace
}  // namespace autoloco::server
