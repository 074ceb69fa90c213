#include "server/runtime/pull_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "common/codec/codec.h"
#include "tests/support/runtime_fakes.h"

namespace autoloco::server {
namespace {

constexpr Ticket kTicket = 5;
constexpr std::size_t kValues = 2 * kBlockValues + 2;  // three blocks
const Instant kStart = absl::UnixEpoch();

std::shared_ptr<const EncodedPayload> Encoded(PullForm form, Version version) {
  return std::make_shared<const EncodedPayload>(
      EncodedPayload::Header{form, version, "exact", form == PullForm::kFull ? Codec::kFp32 : Codec::kRms4},
      std::vector<std::string>{"one", "three", "s"});
}

PullOpened Opened(Ticket ticket) { return {.ticket = ticket, .sender = {"run", {"w", 1}}}; }

class PullTableTest : public ::testing::Test {
 protected:
  PullTableTest() {
    table_.Add(Encoded(PullForm::kFull, 3));
    table_.Park({&call_, Opened(kTicket)}, kStart);
    events_.clear();
  }
  void ServeFull(Version version) { table_.Serve({kTicket, PullForm::kFull, version, "view"}, kStart); }

  const Layout layout_ = *Layout::Make({{"t", {kValues}}});
  FakeTelemetry telemetry_;
  std::deque<Event> events_;
  FakePullCall call_;
  PullTable table_{{&layout_}, absl::Seconds(10), &telemetry_, &events_};
};

TEST_F(PullTableTest, ServesAWholeVersionToItsEnd) {
  ServeFull(3);
  ASSERT_TRUE(call_.answer.has_value());
  EXPECT_EQ(call_.answer->form, PullForm::kFull);
  EXPECT_EQ(call_.answer->version, 3);
  EXPECT_EQ(call_.answer->params_digest, "exact");
  EXPECT_EQ(call_.answer->view_digest, "view");
  EXPECT_EQ(call_.answer->layout_hash, layout_.hash());
  EXPECT_EQ(call_.answer->first_block, 0);
  EXPECT_EQ(call_.answer->block_count, 3);
  EXPECT_EQ(call_.answer->first_byte, 0);
  EXPECT_EQ(call_.answer->byte_count, 9);
  *call_.moved = 9;
  EXPECT_EQ(table_.bytes_sent(), 9);
  EXPECT_TRUE(table_.OnEnded({kTicket, true}, kStart));
  EXPECT_TRUE(call_.ended->ok());
  EXPECT_EQ(table_.size(), 0);
  EXPECT_EQ(table_.bytes_sent(), 9);
  EXPECT_THAT(telemetry_.lines(), ::testing::ElementsAre(absl::StrCat("pulled 9/", 4 * kValues)));
}

TEST_F(PullTableTest, APartIsWholeBlocks) {
  table_.Serve({kTicket, PullForm::kFull, 3, "view", false, 1, 2}, kStart);
  ASSERT_TRUE(call_.answer.has_value());
  EXPECT_EQ(call_.answer->first_block, 1);
  EXPECT_EQ(call_.answer->block_count, 2);
  EXPECT_EQ(call_.answer->first_byte, 3);
  EXPECT_EQ(call_.answer->byte_count, 6);
  EXPECT_EQ(call_.answer->value_count, kBlockValues + 2);
}

TEST_F(PullTableTest, BlocksThatAreNotThereAreRefused) {
  Ticket ticket = 20;
  for (const auto& [first, count] : {std::pair{3, 0}, {3, 1}, {0, 4}, {2, 2}}) {
    FakePullCall call;
    table_.Park({&call, Opened(ticket)}, kStart);
    table_.Serve(
        {ticket++, PullForm::kFull, 3, "", false, static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(count)},
        kStart);
    ASSERT_TRUE(call.ended.has_value());
    EXPECT_EQ(call.ended->code(), absl::StatusCode::kInvalidArgument) << first << "+" << count;
  }
}

TEST_F(PullTableTest, TheHeaderAloneSaysTheSameAndCountsAsNoTransfer) {
  table_.Serve({kTicket, PullForm::kFull, 3, "view", true}, kStart);
  EXPECT_TRUE(call_.answer->header_only);
  EXPECT_EQ(call_.answer->byte_count, 9);
  EXPECT_TRUE(table_.OnEnded({kTicket, true}, kStart));
  EXPECT_TRUE(call_.ended->ok());
  EXPECT_TRUE(telemetry_.lines().empty());
}

TEST_F(PullTableTest, NothingIsAHeaderToo) {
  table_.Serve({kTicket, PullForm::kNothing, 3, "view"}, kStart);
  ASSERT_TRUE(call_.answer.has_value());
  EXPECT_EQ(call_.answer->form, PullForm::kNothing);
  EXPECT_EQ(call_.answer->view_digest, "view");
  EXPECT_EQ(call_.answer->block_count, 0);
  EXPECT_EQ(call_.answer->payload, nullptr);
  EXPECT_TRUE(table_.OnEnded({kTicket, true}, kStart));
  EXPECT_TRUE(telemetry_.lines().empty());
}

TEST_F(PullTableTest, APullUnderWayKeepsItsVersion) {
  ServeFull(3);
  table_.Add(Encoded(PullForm::kFull, 4));
  EXPECT_EQ(call_.answer->payload->header().version, 3);
  FakePullCall next;
  table_.Park({&next, Opened(6)}, kStart);
  table_.Serve({6, PullForm::kFull, 4}, kStart);
  EXPECT_EQ(next.answer->payload->header().version, 4);
}

TEST_F(PullTableTest, AVersionThatWentWhileTheCoresWordWasHeldBackIsRefused) {
  table_.Add(Encoded(PullForm::kFull, 4));
  ServeFull(3);
  EXPECT_FALSE(call_.answer.has_value());
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kAborted);
  EXPECT_EQ(table_.size(), 0);
}

TEST_F(PullTableTest, BroadcastsOfSeveralVersionsAreServed) {
  PullTable table({.layout = &layout_, .payloads_kept = 2}, absl::Seconds(10), &telemetry_, &events_);
  for (Version version = 1; version <= 3; ++version) table.Add(Encoded(PullForm::kBroadcast, version));
  for (const Version version : {2, 3}) {
    FakePullCall call;
    table.Park({&call, Opened(version)}, kStart);
    table.Serve({version, PullForm::kBroadcast, version, "view"}, kStart);
    ASSERT_TRUE(call.answer.has_value());
    EXPECT_EQ(call.answer->payload->header().version, version);
    EXPECT_EQ(call.answer->codec, Codec::kRms4);
    EXPECT_TRUE(table.OnEnded({version, true}, kStart));
  }
  FakePullCall gone;
  table.Park({&gone, Opened(1)}, kStart);
  table.Serve({1, PullForm::kBroadcast, 1, "view"}, kStart);
  EXPECT_EQ(gone.ended->code(), absl::StatusCode::kAborted);
}

TEST_F(PullTableTest, TheLiveViewIsServedAsItIs) {
  const auto reader = std::make_shared<LiveReader>(*LiveView::Allocate(kValues), 3);
  PullTable table({&layout_, reader, 2}, absl::Seconds(10), &telemetry_, &events_);
  FakePullCall call;
  table.Park({&call, Opened(6)}, kStart);
  table.Serve({6, PullForm::kLive, 3, "", false, 2, 0}, kStart);
  ASSERT_TRUE(call.answer.has_value());
  EXPECT_EQ(call.answer->live, reader);
  EXPECT_EQ(call.answer->codec, Codec::kFp32);
  EXPECT_EQ(call.answer->first_block, 2);
  EXPECT_EQ(call.answer->block_count, 1);
  EXPECT_EQ(call.answer->byte_count, 0) << "not known";
  *call.moved = 8;
  EXPECT_TRUE(table.OnEnded({6, true}, kStart));
  EXPECT_THAT(telemetry_.lines(), ::testing::ElementsAre("pulled 8/8"));
}

// A slow link carries each of several streams more slowly than it would carry one.
TEST_F(PullTableTest, StreamsOfOneWorkerMoveTogetherWhatOneWouldHaveTo) {
  ServeFull(3);
  FakePullCall other;
  table_.Park({&other, Opened(6)}, kStart);
  table_.Serve({6, PullForm::kFull, 3, "view"}, kStart);
  *call_.moved = TransferWatch::kLeastBytes / 2;
  *other.moved = TransferWatch::kLeastBytes / 2 - 1;
  table_.Tick(kStart + absl::Seconds(10));
  EXPECT_EQ(call_.cuts, 0);
  EXPECT_EQ(other.cuts, 1);
}

TEST_F(PullTableTest, ABrokenStreamIsEndedAndNotCountedAsDone) {
  ServeFull(3);
  EXPECT_TRUE(table_.OnEnded({kTicket, false}, kStart));
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(telemetry_.lines().empty());
  EXPECT_FALSE(table_.OnEnded({kTicket, false}, kStart));
}

TEST_F(PullTableTest, WhatDoesNotMoveIsCutOnceAndEndsLater) {
  ServeFull(3);
  table_.Tick(kStart + absl::Seconds(10));
  table_.Tick(kStart + absl::Seconds(20));
  EXPECT_EQ(call_.cuts, 1);
  EXPECT_FALSE(call_.ended.has_value()) << "a write is under way";
}

TEST_F(PullTableTest, BytesThatMoveAreHeard) {
  ServeFull(3);
  *call_.moved = 1;
  table_.Tick(kStart + absl::Seconds(1));
  ASSERT_EQ(events_.size(), 1);
  EXPECT_EQ(std::get<WorkerHeard>(events_[0]).sender.worker.name, "w");
}

TEST_F(PullTableTest, RefusedAndUnknown) {
  table_.Refuse(99, absl::InternalError(""));
  table_.Serve({99, PullForm::kFull, 3}, kStart);
  table_.Refuse(kTicket, absl::AbortedError("gone"));
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kAborted);
  EXPECT_EQ(table_.size(), 0);
}

TEST_F(PullTableTest, ClosingLetsServedOnesGoOn) {
  ServeFull(3);
  FakePullCall parked;
  table_.Park({&parked, Opened(6)}, kStart);
  table_.CloseParked(absl::UnavailableError("going"));
  EXPECT_EQ(parked.ended->code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(call_.ended.has_value());
  EXPECT_EQ(table_.size(), 1);
}

}  // namespace
}  // namespace autoloco::server
