#include "server/runtime/call_table.h"

#include <gtest/gtest.h>

#include "tests/support/runtime_fakes.h"

namespace autoloco::server {
namespace {

const Instant kStart = absl::UnixEpoch();

class CallTableTest : public ::testing::Test {
 protected:
  const Layout layout_ = *Layout::Make({{"t", {10}}});
  ManualClock clock_;
  Inbox inbox_{&clock_};
  FakeRecordStore records_;
  PayloadStore payloads_{1000, &records_};
  FakeTelemetry telemetry_;
  std::deque<Event> events_;
  WorkPool pool_{1};
  CallTable table_{
      {.calls_max = 2}, {&layout_, Codec::kFp32, &pool_, &inbox_, &payloads_, &telemetry_, &events_}, {&layout_}};
};

TEST_F(CallTableTest, InputsOfCallsThatAreGoneAreCounted) {
  table_.On(SessionEnded{1});
  table_.On(PushAbandoned{2}, kStart);
  table_.On(PullEnded{3, true}, kStart);
  table_.On(PushChecked{4, absl::OkStatus(), true, ""});
  EXPECT_EQ(table_.ignored_inputs(), 4);
  EXPECT_EQ(table_.size(), 0);
}

TEST_F(CallTableTest, CallsBeyondTheLimitAreTurnedAway) {
  FakeSessionCall session;
  FakePushCall push;
  FakePullCall pull;
  table_.On(SessionOpened{1, &session}, kStart);
  table_.On(PushStarted{2, &push}, kStart);
  EXPECT_EQ(table_.size(), 2);
  table_.On(PullParked{&pull, PullOpened{3, {}}}, kStart);
  EXPECT_EQ(pull.ended->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(events_.empty());
}

TEST_F(CallTableTest, AnswersPushStatus) {
  FakePushStatusCall known;
  FakePushStatusCall refused;
  table_.On(PushStatusParked{&known, PushStatusAsked{1, {}, 0, 0}});
  table_.On(PushStatusParked{&refused, PushStatusAsked{2, {}, 0, 0}});
  EXPECT_EQ(events_.size(), 2);
  AnswerPushStatus answer;
  answer.ticket = 1;
  answer.known = true;
  table_.Answer(answer);
  ASSERT_TRUE(known.answer.has_value());
  EXPECT_TRUE(known.answer->known);
  answer.ticket = 2;
  answer.status = absl::FailedPreconditionError("fenced");
  table_.Answer(answer);
  EXPECT_EQ(refused.ended->code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(table_.size(), 0);
}

TEST_F(CallTableTest, OfAPushThatIsNotKnownItTellsWhatIsMissing) {
  const PushKey key{{"w", 1}, 4, 0};
  ASSERT_TRUE(payloads_.Admit(9, {key, "digest", 10}).ok());
  ASSERT_TRUE(payloads_.Find(9)->Put(2, "abc").ok());
  payloads_.SetAside(9, kStart);
  FakePushStatusCall unknown;
  FakePushStatusCall known;
  table_.On(PushStatusParked{&unknown, PushStatusAsked{1, {"run", key.worker}, key.round, key.fragment}});
  table_.On(PushStatusParked{&known, PushStatusAsked{2, {"run", key.worker}, key.round, key.fragment}});
  table_.Answer(AnswerPushStatus{.ticket = 1, .status = absl::OkStatus(), .known = false, .reason = ""});
  table_.Answer(AnswerPushStatus{.ticket = 2, .status = absl::OkStatus(), .known = true, .reason = ""});
  EXPECT_EQ(unknown.missing, (std::vector<ByteRange>{{0, 2}, {5, 5}}));
  EXPECT_TRUE(known.missing.empty());
}

TEST_F(CallTableTest, EvictionsAreAnsweredByTheCore) {
  FakePullCall done;
  FakePullCall closed;
  table_.On(EvictParked{&done, EvictAsked{1, "w", false}});
  table_.On(EvictParked{&closed, EvictAsked{2, "w", true}});
  EXPECT_EQ(events_.size(), 2);
  EXPECT_EQ(table_.size(), 2);
  table_.Answer(AnswerEvict{1, absl::NotFoundError("w")});
  table_.Answer(AnswerEvict{9, absl::OkStatus()});
  EXPECT_EQ(done.ended->code(), absl::StatusCode::kNotFound);
  table_.Close(kStart);
  EXPECT_EQ(closed.ended->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(table_.size(), 0);
}

TEST_F(CallTableTest, RejectedCallsEndWithTheirStatus) {
  FakePullCall pull;
  table_.On(CallRejected{&pull, absl::InvalidArgumentError("name")});
  EXPECT_EQ(pull.ended->code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CallTableTest, OnceClosedEveryCallEnds) {
  FakeSessionCall session;
  FakePushStatusCall status;
  table_.On(SessionOpened{1, &session}, kStart);
  table_.On(PushStatusParked{&status, PushStatusAsked{2, {}, 0, 0}});
  table_.Close(kStart);
  EXPECT_EQ(session.ended->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.ended->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(table_.size(), 0);
  FakePushCall late;
  table_.On(PushStarted{3, &late}, kStart);
  EXPECT_EQ(late.ended->code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace autoloco::server
