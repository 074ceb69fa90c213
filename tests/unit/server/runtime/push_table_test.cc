#include "server/runtime/push_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "common/base/digest.h"
#include "tests/support/runtime_fakes.h"

namespace autoloco::server {
namespace {

using ::testing::Contains;

constexpr Ticket kTicket = 5;
const Instant kStart = absl::UnixEpoch();
const absl::Duration kStallTimeout = absl::Seconds(10);

class PushTableTest : public ::testing::Test {
 protected:
  PushTableTest() { table_.Start({kTicket, &call_}, kStart); }

  // Header, and the core's word that the bytes may come.
  void Admit() {
    PushOpened header;
    header.ticket = kTicket;
    header.sender = {"run", {"w", 1}};
    header.payload_digest = Digest128(std::as_bytes(std::span(payload_.data(), payload_.size())));
    header.payload_bytes = payload_.size();
    ASSERT_TRUE(table_.OnHeader({header}));
    ASSERT_EQ(events_.size(), 1);
    events_.clear();
    table_.Admit({kTicket, payload_.size()}, kStart);
  }
  // All bytes come and are checked.
  void Deliver() {
    ASSERT_TRUE(call_.payload->Take(0, payload_).ok());
    ASSERT_TRUE(table_.OnPayloadEnded({kTicket, absl::OkStatus(), false}, kStart));
    ASSERT_TRUE(table_.OnChecked(std::get<PushChecked>(*inbox_.Take(std::nullopt))));
  }
  template <typename Wanted>
  Wanted OnlyEvent() {
    EXPECT_EQ(events_.size(), 1);
    const Event event = events_.front();
    events_.clear();
    return std::get<Wanted>(event);
  }

  const Layout layout_ = *Layout::Make({{"only", {100}}});
  const std::string payload_ = EncodeVector(std::vector<float>(100, 0.5F), Codec::kFp32, 1);
  ManualClock clock_;
  Inbox inbox_{&clock_};
  FakeRecordStore records_;
  PayloadStore payloads_{1000, 1000, &records_};
  FakeTelemetry telemetry_;
  std::deque<Event> events_;
  WorkPool pool_{2};
  FakePushCall call_;
  PushTable table_{{&layout_, Codec::kFp32, &pool_, &inbox_, &payloads_, &telemetry_, &events_}, kStallTimeout};
};

TEST_F(PushTableTest, BytesWaitForTheCore) {
  EXPECT_EQ(call_.header_reads, 1);
  PushOpened header;
  header.ticket = kTicket;
  EXPECT_TRUE(table_.OnHeader({header}));
  EXPECT_EQ(call_.payload, nullptr);
  EXPECT_EQ(OnlyEvent<PushOpened>().ticket, kTicket);
}

TEST_F(PushTableTest, AWholePayloadIsCheckedAndAnswered) {
  Admit();
  Deliver();
  const auto verified = OnlyEvent<PushVerified>();
  EXPECT_TRUE(verified.status.ok()) << verified.status;
  EXPECT_TRUE(verified.finite);
  const PushKey key{{"w", 1}, 0, 0};
  payloads_.Keep(kTicket, key);
  table_.Answer({kTicket, PushOutcome::kAccepted, "", false});
  EXPECT_EQ(call_.outcome, PushOutcome::kAccepted);
  EXPECT_NE(payloads_.Find(key), nullptr) << "an accepted payload stays for the commit";
  EXPECT_EQ(payloads_.in_flight_bytes(), 0);
  EXPECT_EQ(table_.size(), 0);
  EXPECT_EQ(table_.bytes_received(), payload_.size());
  EXPECT_THAT(telemetry_.lines(), Contains("pushed " + std::to_string(payload_.size()) + "/400"));
}

TEST_F(PushTableTest, OtherOutcomesDropThePayload) {
  Admit();
  Deliver();
  table_.Answer({kTicket, PushOutcome::kLate, "", false});
  EXPECT_EQ(call_.outcome, PushOutcome::kLate);
  EXPECT_EQ(payloads_.size(), 0);
}

TEST_F(PushTableTest, WhatDoesNotFitIsRefusedAndTheCoreTold) {
  ASSERT_TRUE(payloads_.Admit(99, 1000).ok());
  Admit();
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(OnlyEvent<PushCancelled>().ticket, kTicket);
}

TEST_F(PushTableTest, WrongBytesGoToTheCore) {
  Admit();
  EXPECT_TRUE(table_.OnPayloadEnded({kTicket, absl::OutOfRangeError("gap"), false}, kStart));
  EXPECT_EQ(OnlyEvent<PushVerified>().status.code(), absl::StatusCode::kOutOfRange);
  table_.Refuse(kTicket, absl::OutOfRangeError("gap"));
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(payloads_.size(), 0);
}

TEST_F(PushTableTest, AnOversizedChunkEndsTheCallAtOnce) {
  Admit();
  EXPECT_TRUE(table_.OnPayloadEnded({kTicket, absl::ResourceExhaustedError("chunk"), false}, kStart));
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kResourceExhausted);
  OnlyEvent<PushCancelled>();
}

TEST_F(PushTableTest, AShortStreamIsJudgedUnlessTheCallerIsGone) {
  Admit();
  EXPECT_TRUE(table_.OnPayloadEnded({kTicket, absl::DataLossError("short"), true}, kStart));
  EXPECT_TRUE(events_.empty());
  table_.Tick(kStart);
  EXPECT_EQ(OnlyEvent<PushVerified>().status.code(), absl::StatusCode::kDataLoss);
  table_.Tick(kStart);
  EXPECT_TRUE(events_.empty()) << "once only";
}

TEST_F(PushTableTest, ACallerThatIsGoneIsNoShortStream) {
  Admit();
  EXPECT_TRUE(table_.OnPayloadEnded({kTicket, absl::DataLossError("short"), true}, kStart));
  EXPECT_TRUE(table_.OnAbandoned({kTicket}));
  OnlyEvent<PushCancelled>();
  EXPECT_TRUE(call_.ended.has_value());
  EXPECT_EQ(payloads_.size(), 0);
  table_.Tick(kStart);
  EXPECT_TRUE(events_.empty());
}

TEST_F(PushTableTest, AbandonedWhileBeingCheckedCountsForNothing) {
  Admit();
  ASSERT_TRUE(call_.payload->Take(0, payload_).ok());
  ASSERT_TRUE(table_.OnPayloadEnded({kTicket, absl::OkStatus(), false}, kStart));
  EXPECT_TRUE(table_.OnAbandoned({kTicket}));
  OnlyEvent<PushCancelled>();
  EXPECT_FALSE(table_.OnChecked(std::get<PushChecked>(*inbox_.Take(std::nullopt))));
  EXPECT_TRUE(events_.empty());
}

TEST_F(PushTableTest, WhatDoesNotMoveIsCut) {
  Admit();
  table_.Tick(kStart + kStallTimeout - absl::Milliseconds(1));
  EXPECT_FALSE(call_.ended.has_value());
  table_.Tick(kStart + kStallTimeout);
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kDeadlineExceeded);
  OnlyEvent<PushCancelled>();
  EXPECT_EQ(payloads_.size(), 0);
}

TEST_F(PushTableTest, AStreamWithoutHeaderIsCutAndTheCoreNotTold) {
  table_.Tick(kStart + kStallTimeout);
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(events_.empty());
}

TEST_F(PushTableTest, BytesThatMoveAreHeard) {
  Admit();
  ASSERT_TRUE(call_.payload->Take(0, payload_.substr(0, 10)).ok());
  table_.Tick(kStart + absl::Seconds(1));
  EXPECT_EQ(OnlyEvent<WorkerHeard>().sender.worker.name, "w");
  table_.Tick(kStart + absl::Seconds(2));
  EXPECT_TRUE(events_.empty());
}

TEST_F(PushTableTest, UnknownTicketsAreIgnored) {
  table_.Admit({99, 10}, kStart);
  table_.Answer({99, PushOutcome::kAccepted, "", false});
  table_.Refuse(99, absl::InternalError(""));
  EXPECT_FALSE(table_.OnPayloadEnded({99, absl::OkStatus(), false}, kStart));
  EXPECT_FALSE(table_.OnAbandoned({99}));
  EXPECT_FALSE(table_.OnChecked({99, absl::OkStatus(), true, ""}));
  EXPECT_FALSE(table_.OnMalformed({99, absl::InternalError("")}));
}

TEST_F(PushTableTest, CloseAllRefusesAll) {
  Admit();
  table_.CloseAll(absl::UnavailableError("going"));
  EXPECT_EQ(call_.ended->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(table_.size(), 0);
}

}  // namespace
}  // namespace autoloco::server
