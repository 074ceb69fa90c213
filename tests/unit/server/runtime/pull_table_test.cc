#include "server/runtime/pull_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

#include "tests/support/runtime_fakes.h"

namespace autoloco::server {
namespace {

constexpr Ticket kTicket = 5;
const Instant kStart = absl::UnixEpoch();

std::shared_ptr<const EncodedSnapshot> Snapshot(Version version) {
  return std::make_shared<const EncodedSnapshot>(
      EncodedSnapshot::Header{.version = version, .params_digest = "d", .layout_hash = 1, .value_count = 2},
      std::vector<std::string>{"payload"});
}

class PullTableTest : public ::testing::Test {
 protected:
  PullTableTest() {
    table_.SetSnapshot(Snapshot(3));
    table_.Park({&call_, PullOpened{kTicket, {"run", {"w", 1}}, true, 0}}, kStart);
    events_.clear();
  }

  FakeTelemetry telemetry_;
  std::deque<Event> events_;
  FakePullCall call_;
  PullTable table_{absl::Seconds(10), &telemetry_, &events_};
};

TEST_F(PullTableTest, ServesTheSnapshotToItsEnd) {
  table_.Serve({kTicket, 3}, kStart);
  ASSERT_NE(call_.snapshot, nullptr);
  *call_.moved = 7;
  EXPECT_EQ(table_.bytes_sent(), 7);
  EXPECT_TRUE(table_.OnEnded({kTicket, true}, kStart));
  EXPECT_TRUE(call_.ended->ok());
  EXPECT_EQ(table_.size(), 0);
  EXPECT_EQ(table_.bytes_sent(), 7);
  EXPECT_THAT(telemetry_.lines(), ::testing::ElementsAre("pulled 7/8"));
}

TEST_F(PullTableTest, APullUnderWayKeepsItsVersion) {
  table_.Serve({kTicket, 3}, kStart);
  table_.SetSnapshot(Snapshot(4));
  EXPECT_EQ(call_.snapshot->header().version, 3);
  FakePullCall next;
  table_.Park({&next, PullOpened{6, {"run", {"w", 1}}, true, 0}}, kStart);
  table_.Serve({6, 4}, kStart);
  EXPECT_EQ(next.snapshot->header().version, 4);
}

TEST_F(PullTableTest, AVersionThatWentWhileTheCoresWordWasHeldBackIsRefused) {
  table_.SetSnapshot(Snapshot(4));
  table_.Serve({kTicket, 3}, kStart);
  EXPECT_EQ(call_.snapshot, nullptr);
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kAborted);
  EXPECT_EQ(table_.size(), 0);
}

TEST_F(PullTableTest, ABrokenStreamIsEndedAndNotCountedAsDone) {
  table_.Serve({kTicket, 3}, kStart);
  EXPECT_TRUE(table_.OnEnded({kTicket, false}, kStart));
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(telemetry_.lines().empty());
  EXPECT_FALSE(table_.OnEnded({kTicket, false}, kStart));
}

TEST_F(PullTableTest, WhatDoesNotMoveIsCutOnceAndEndsLater) {
  table_.Serve({kTicket, 3}, kStart);
  table_.Tick(kStart + absl::Seconds(10));
  table_.Tick(kStart + absl::Seconds(20));
  EXPECT_EQ(call_.cuts, 1);
  EXPECT_FALSE(call_.ended.has_value()) << "a write is under way";
}

TEST_F(PullTableTest, BytesThatMoveAreHeard) {
  table_.Serve({kTicket, 3}, kStart);
  *call_.moved = 1;
  table_.Tick(kStart + absl::Seconds(1));
  ASSERT_EQ(events_.size(), 1);
  EXPECT_EQ(std::get<WorkerHeard>(events_[0]).sender.worker.name, "w");
}

TEST_F(PullTableTest, RefusedAndUnknown) {
  table_.Refuse(99, absl::InternalError(""));
  table_.Serve({99, 3}, kStart);
  table_.Refuse(kTicket, absl::AbortedError("gone"));
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kAborted);
  EXPECT_EQ(table_.size(), 0);
}

TEST_F(PullTableTest, ClosingLetsServedOnesGoOn) {
  table_.Serve({kTicket, 3}, kStart);
  FakePullCall parked;
  table_.Park({&parked, PullOpened{6, {"run", {"w", 1}}, true, 0}}, kStart);
  table_.CloseParked(absl::UnavailableError("going"));
  EXPECT_EQ(parked.ended->code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(call_.ended.has_value());
  EXPECT_EQ(table_.size(), 1);
}

}  // namespace
}  // namespace autoloco::server
