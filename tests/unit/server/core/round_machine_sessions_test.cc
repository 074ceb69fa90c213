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
  PullOpened pull{.ticket = 70, .sender = script.SenderOf("a"), .current = true, .version = 0};
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

}  // namespace
}  // namespace autoloco::server
