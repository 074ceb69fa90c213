#include "server/runtime/session_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <variant>

#include "tests/support/runtime_fakes.h"

namespace autoloco::server {
namespace {

constexpr Ticket kTicket = 5;
const Instant kStart = absl::UnixEpoch();
const absl::Duration kHelloTimeout = absl::Seconds(10);

class SessionTableTest : public ::testing::Test {
 protected:
  void SetUp() override { table_.Open({kTicket, &call_}, kStart); }

  SessionRead Hello() const { return {kTicket, HelloReceived{kTicket, {"run", {"w", 0}}, 1}}; }
  SessionRead Goodbye() const { return {kTicket, GoodbyeReceived{kTicket, {"run", {"w", 1}}, "bye"}}; }
  void Join() {
    ASSERT_TRUE(table_.OnRead(Hello(), kStart));
    events_.clear();
  }

  FakeSessionCall call_;
  std::deque<Event> events_;
  SessionTable table_{kHelloTimeout, &events_};
};

TEST_F(SessionTableTest, ReadsOneMessageAtATime) {
  EXPECT_EQ(call_.reads, 1);
  EXPECT_TRUE(table_.OnRead(Hello(), kStart));
  EXPECT_EQ(call_.reads, 2);
  ASSERT_EQ(events_.size(), 1);
  EXPECT_TRUE(std::holds_alternative<HelloReceived>(events_[0]));
}

TEST_F(SessionTableTest, TheFirstMessageIsHello) {
  EXPECT_TRUE(table_.OnRead(Goodbye(), kStart));
  ASSERT_TRUE(call_.ended.has_value());
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(events_.empty()) << "the core never knew it";
  EXPECT_EQ(table_.size(), 0);
}

TEST_F(SessionTableTest, ASecondHelloEndsTheSession) {
  Join();
  EXPECT_TRUE(table_.OnRead(Hello(), kStart));
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(events_.size(), 1);
  EXPECT_TRUE(std::holds_alternative<SessionClosed>(events_[0]));
}

TEST_F(SessionTableTest, WritesOneAfterTheOther) {
  Join();
  table_.Send(kTicket, SendWelcome{kTicket, 1, 0}, kStart);
  table_.Send(kTicket, SendAbort{kTicket, 3, "why"}, kStart);
  EXPECT_EQ(call_.sent.size(), 1);
  EXPECT_TRUE(table_.OnWritten({kTicket, true}));
  ASSERT_EQ(call_.sent.size(), 2);
  EXPECT_TRUE(std::holds_alternative<SendAbort>(call_.sent[1]));
}

TEST_F(SessionTableTest, ClosesAfterTheQueueHasLeft) {
  Join();
  table_.Send(kTicket, SendDrain{kTicket, true, "done"}, kStart);
  table_.Close(kTicket, absl::OkStatus(), kStart);
  EXPECT_FALSE(call_.ended.has_value());
  table_.Send(kTicket, SendAbort{kTicket, 3, "too late"}, kStart);
  EXPECT_TRUE(table_.OnWritten({kTicket, true}));
  EXPECT_TRUE(call_.ended->ok());
  EXPECT_EQ(call_.sent.size(), 1);
  ASSERT_EQ(events_.size(), 1);
  EXPECT_EQ(std::get<SessionClosed>(events_[0]).session, kTicket);
  EXPECT_EQ(table_.size(), 0);
}

TEST_F(SessionTableTest, MessagesAfterCloseAreIgnored) {
  Join();
  table_.Send(kTicket, SendWelcome{kTicket, 1, 0}, kStart);
  table_.Close(kTicket, absl::AbortedError("enough"), kStart);
  EXPECT_TRUE(table_.OnRead(Goodbye(), kStart));
  EXPECT_TRUE(events_.empty());
}

TEST_F(SessionTableTest, TheEndOfTheStreamIsToldOnce) {
  Join();
  EXPECT_TRUE(table_.OnEnded({kTicket}));
  EXPECT_TRUE(call_.ended.has_value());
  EXPECT_EQ(events_.size(), 1);
  EXPECT_FALSE(table_.OnEnded({kTicket})) << "unknown now";
  EXPECT_EQ(events_.size(), 1);
}

TEST_F(SessionTableTest, ABrokenWriteEndsTheSession) {
  Join();
  table_.Send(kTicket, SendWelcome{kTicket, 1, 0}, kStart);
  table_.Send(kTicket, SendAbort{kTicket, 1, ""}, kStart);
  EXPECT_TRUE(table_.OnWritten({kTicket, false}));
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(events_.size(), 1);
}

TEST_F(SessionTableTest, WithoutHelloItIsCutInTime) {
  table_.Tick(kStart + kHelloTimeout - absl::Milliseconds(1));
  EXPECT_FALSE(call_.ended.has_value());
  table_.Tick(kStart + kHelloTimeout);
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(events_.empty());
}

TEST_F(SessionTableTest, APeerThatTakesNothingIsCut) {
  Join();
  for (std::size_t i = 0; i <= SessionTable::kQueueMax; ++i) {
    table_.Send(kTicket, SendAbort{kTicket, i, ""}, kStart);
  }
  EXPECT_EQ(call_.cuts, 0);
  table_.Send(kTicket, SendAbort{kTicket, 0, "one too many"}, kStart);
  EXPECT_EQ(call_.cuts, 1);
  EXPECT_FALSE(call_.ended.has_value()) << "a write is under way";
  EXPECT_TRUE(table_.OnWritten({kTicket, false}));
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(SessionTableTest, LastWordsThatDoNotLeaveAreCut) {
  Join();
  table_.Send(kTicket, SendDrain{kTicket, true, ""}, kStart);
  table_.Close(kTicket, absl::OkStatus(), kStart);
  table_.Tick(kStart + SessionTable::kFlushTimeout - absl::Milliseconds(1));
  EXPECT_EQ(call_.cuts, 0);
  table_.Tick(kStart + SessionTable::kFlushTimeout);
  table_.Tick(kStart + SessionTable::kFlushTimeout * 2);
  EXPECT_EQ(call_.cuts, 1);
}

TEST_F(SessionTableTest, UnknownTicketsAreIgnored) {
  table_.Send(99, SendAbort{99, 0, ""}, kStart);
  table_.Close(99, absl::OkStatus(), kStart);
  EXPECT_FALSE(table_.OnWritten({99, true}));
  EXPECT_FALSE(table_.OnRead({99, HelloReceived{}}, kStart));
  EXPECT_FALSE(table_.OnMalformed({99, absl::InternalError("")}, kStart));
}

TEST_F(SessionTableTest, CloseAllClosesAll) {
  FakeSessionCall other;
  table_.Open({6, &other}, kStart);
  table_.CloseAll(absl::UnavailableError("going"), kStart);
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(other.ended->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(table_.size(), 0);
}

}  // namespace
}  // namespace autoloco::server
