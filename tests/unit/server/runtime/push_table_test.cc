#include "server/runtime/push_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "common/base/digest.h"
#include "tests/support/runtime_fakes.h"

namespace autoloco::server {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr Ticket kTicket = 5;
const Instant kStart = absl::UnixEpoch();
const absl::Duration kStallTimeout = absl::Seconds(10);
const PushKey kKey{{"w", 1}, 0, 0};

class PushTableTest : public ::testing::Test {
 protected:
  PushOpened Header(Ticket ticket) const {
    PushOpened header;
    header.ticket = ticket;
    header.sender = {"run", {"w", 1}};
    header.payload_digest = Digest128(std::as_bytes(std::span(payload_.data(), payload_.size())));
    header.payload_bytes = payload_.size();
    return header;
  }
  std::uint64_t Size() const { return payload_.size(); }
  std::uint64_t Half() const { return payload_.size() / 2; }
  FakePushCall& Call(Ticket ticket) { return calls_[ticket]; }

  // A stream of the push opens; its header brings it to the table.
  void Open(Ticket ticket, const ByteRange& range) { Open(Header(ticket), range); }
  void Open(const PushOpened& header, const ByteRange& range) {
    table_.Start({header.ticket, &Call(header.ticket)}, now_);
    ASSERT_TRUE(table_.OnHeader({header, range}, now_));
  }
  // The core admits the push.
  void Admit(Ticket push) {
    ASSERT_EQ(OnlyEvent<PushOpened>().ticket, push);
    table_.Admit({push, Size()}, now_);
  }
  void OpenWhole() {
    Open(kTicket, {0, Size()});
    Admit(kTicket);
  }
  // `count` bytes come on a stream that is at `offset` of its range, which begins at `first`.
  void Bring(Ticket stream, std::uint64_t first, std::uint64_t offset, std::uint64_t count) {
    const absl::string_view bytes = absl::string_view(payload_).substr(first + offset, count);
    ASSERT_TRUE(Call(stream).part->Take(offset, std::span(&bytes, 1)).ok());
  }
  void End(Ticket stream) { ASSERT_TRUE(table_.OnPayloadEnded({stream, absl::OkStatus(), false}, now_)); }
  void CutShort(Ticket stream) {
    ASSERT_TRUE(table_.OnPayloadEnded({stream, absl::DataLossError("short"), true}, now_));
  }
  void Lose(Ticket stream) { ASSERT_TRUE(table_.OnAbandoned({stream}, now_)); }
  // The pool is done with the whole payload.
  void Check() { ASSERT_TRUE(table_.OnChecked(std::get<PushChecked>(*inbox_.Take(std::nullopt)))); }
  void TickAfter(absl::Duration pause) {
    now_ += pause;
    table_.Tick(now_);
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
  Instant now_ = kStart;
  Inbox inbox_{&clock_};
  FakeRecordStore records_;
  PayloadStore payloads_{1000, &records_};
  FakeTelemetry telemetry_;
  std::deque<Event> events_;
  WorkPool pool_{2};
  std::map<Ticket, FakePushCall> calls_;
  PushTable table_{{&layout_, Codec::kFp32, &pool_, &inbox_, &payloads_, &telemetry_, &events_}, 1000, kStallTimeout};
};

// ---------------------------------------------------------------------------------------------------- one stream

TEST_F(PushTableTest, BytesWaitForTheCore) {
  Open(kTicket, {0, Size()});
  EXPECT_EQ(Call(kTicket).header_reads, 1);
  EXPECT_EQ(Call(kTicket).part, nullptr);
  EXPECT_EQ(OnlyEvent<PushOpened>().ticket, kTicket);
}

TEST_F(PushTableTest, AWholePayloadIsCheckedAndAnswered) {
  OpenWhole();
  Bring(kTicket, 0, 0, Size());
  EXPECT_EQ(records_.arrivals, 0);
  End(kTicket);
  Check();
  EXPECT_EQ(records_.arrivals, 1) << "storage may begin with it while it is checked";
  const auto verified = OnlyEvent<PushVerified>();
  EXPECT_TRUE(verified.status.ok()) << verified.status;
  EXPECT_TRUE(verified.finite);
  payloads_.Keep(kTicket, kKey);
  table_.Answer({kTicket, PushOutcome::kAccepted, "", false});
  EXPECT_EQ(Call(kTicket).outcome, PushOutcome::kAccepted);
  EXPECT_NE(payloads_.Find(kKey), nullptr) << "an accepted payload stays for the commit";
  EXPECT_EQ(payloads_.in_flight_bytes(), 0);
  EXPECT_EQ(table_.size(), 0);
  EXPECT_EQ(table_.bytes_received(), Size());
  EXPECT_THAT(telemetry_.lines(), Contains("pushed " + std::to_string(Size()) + "/400"));
}

TEST_F(PushTableTest, OtherOutcomesDropThePayload) {
  OpenWhole();
  Bring(kTicket, 0, 0, Size());
  End(kTicket);
  Check();
  table_.Answer({kTicket, PushOutcome::kLate, "", false});
  EXPECT_EQ(Call(kTicket).outcome, PushOutcome::kLate);
  EXPECT_EQ(payloads_.size(), 0);
}

TEST_F(PushTableTest, WrongBytesGoToTheCore) {
  OpenWhole();
  EXPECT_TRUE(table_.OnPayloadEnded({kTicket, absl::OutOfRangeError("gap"), false}, now_));
  EXPECT_EQ(OnlyEvent<PushVerified>().status.code(), absl::StatusCode::kOutOfRange);
  table_.Refuse(kTicket, absl::OutOfRangeError("gap"));
  EXPECT_EQ(Call(kTicket).ended->code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(payloads_.size(), 0);
}

TEST_F(PushTableTest, AnOversizedChunkEndsTheCallAtOnce) {
  OpenWhole();
  EXPECT_TRUE(table_.OnPayloadEnded({kTicket, absl::ResourceExhaustedError("chunk"), false}, now_));
  EXPECT_EQ(Call(kTicket).ended->code(), absl::StatusCode::kResourceExhausted);
  OnlyEvent<PushCancelled>();
  EXPECT_EQ(payloads_.size(), 0);
}

TEST_F(PushTableTest, AShortStreamIsJudgedUnlessTheCallerIsGone) {
  OpenWhole();
  CutShort(kTicket);
  TickAfter(absl::Milliseconds(200));
  EXPECT_TRUE(events_.empty());
  TickAfter(absl::Milliseconds(200));
  EXPECT_EQ(OnlyEvent<PushVerified>().status.code(), absl::StatusCode::kDataLoss);
  TickAfter(absl::Milliseconds(200));
  EXPECT_TRUE(events_.empty()) << "once only";
}

TEST_F(PushTableTest, ACallerThatIsGoneIsNoShortStream) {
  OpenWhole();
  CutShort(kTicket);
  Lose(kTicket);
  OnlyEvent<PushCancelled>();
  EXPECT_TRUE(Call(kTicket).ended.has_value());
  EXPECT_EQ(payloads_.size(), 0) << "nothing came";
  TickAfter(absl::Seconds(1));
  EXPECT_TRUE(events_.empty());
}

TEST_F(PushTableTest, AWholePushIsAnsweredThoughNobodyHears) {
  OpenWhole();
  Bring(kTicket, 0, 0, Size());
  End(kTicket);
  Lose(kTicket);
  EXPECT_EQ(table_.size(), 0);
  EXPECT_TRUE(events_.empty());
  Check();
  EXPECT_TRUE(OnlyEvent<PushVerified>().status.ok());
  payloads_.Keep(kTicket, kKey);
  table_.Answer({kTicket, PushOutcome::kAccepted, "", false});
  EXPECT_NE(payloads_.Find(kKey), nullptr);
  EXPECT_FALSE(Call(kTicket).outcome.has_value());
}

TEST_F(PushTableTest, AMalformedHeaderEndsTheStreamAndTheCoreIsNotTold) {
  table_.Start({kTicket, &Call(kTicket)}, now_);
  EXPECT_TRUE(table_.OnMalformed({kTicket, absl::InvalidArgumentError("no header")}));
  EXPECT_EQ(Call(kTicket).ended->code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(events_.empty());
}

TEST_F(PushTableTest, UnknownTicketsAreIgnored) {
  table_.Admit({99, 10}, now_);
  table_.Answer({99, PushOutcome::kAccepted, "", false});
  table_.Refuse(99, absl::InternalError(""));
  EXPECT_FALSE(table_.OnHeader({Header(99), {0, 1}}, now_));
  EXPECT_FALSE(table_.OnPayloadEnded({99, absl::OkStatus(), false}, now_));
  EXPECT_FALSE(table_.OnAbandoned({99}, now_));
  EXPECT_FALSE(table_.OnChecked({99, absl::OkStatus(), true, ""}));
  EXPECT_FALSE(table_.OnMalformed({99, absl::InternalError("")}));
}

TEST_F(PushTableTest, CloseAllRefusesAll) {
  OpenWhole();
  table_.Start({kTicket + 1, &Call(kTicket + 1)}, now_);
  table_.CloseAll(absl::UnavailableError("going"));
  EXPECT_EQ(Call(kTicket).ended->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Call(kTicket + 1).ended->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(table_.size(), 0);
}

// ---------------------------------------------------------------------------------------------------- several streams

TEST_F(PushTableTest, StreamsCarryOnePushTogether) {
  Open(1, {0, Half()});
  Open(2, {Half(), Size() - Half()});
  Admit(1);  // the core heard of one
  ASSERT_NE(Call(2).part, nullptr);
  Bring(2, Half(), 0, Size() - Half());
  End(2);
  Bring(1, 0, 0, Half());
  End(1);
  Check();
  const auto verified = OnlyEvent<PushVerified>();
  EXPECT_EQ(verified.ticket, 1);
  EXPECT_TRUE(verified.status.ok()) << verified.status;
  table_.Answer({1, PushOutcome::kLate, "closed", false});
  EXPECT_EQ(Call(1).outcome, PushOutcome::kLate);
  EXPECT_EQ(Call(2).outcome, PushOutcome::kLate);
  EXPECT_EQ(Call(2).reason, "closed");
  EXPECT_EQ(table_.size(), 0);
}

TEST_F(PushTableTest, AStreamJoinsWhatIsReceivedOrChecked) {
  OpenWhole();
  Bring(kTicket, 0, 0, Half());
  Open(kTicket + 1, {Half(), Size() - Half()});
  EXPECT_TRUE(events_.empty());
  ASSERT_NE(Call(kTicket + 1).part, nullptr);
  Bring(kTicket + 1, Half(), 0, Size() - Half());
  End(kTicket + 1);  // all is there, though the first stream still sends
  Open(kTicket + 2, {Size(), 0});
  EXPECT_EQ(Call(kTicket + 2).part, nullptr) << "it only waits for the answer";
  Check();
  OnlyEvent<PushVerified>();
  table_.Answer({kTicket, PushOutcome::kAccepted, "", false});
  for (Ticket ticket = kTicket; ticket < kTicket + 3; ++ticket) EXPECT_EQ(Call(ticket).outcome, PushOutcome::kAccepted);
}

TEST_F(PushTableTest, AnotherDeltaUnderTheSameKeyIsAnotherPush) {
  OpenWhole();
  PushOpened other = Header(kTicket + 1);
  other.payload_digest = "another";
  Open(other, {0, Size()});
  EXPECT_EQ(OnlyEvent<PushOpened>().ticket, kTicket + 1) << "the core decides";
  for (const auto change :
       {+[](PushOpened* header) { header->sender.run_id = "other"; },
        +[](PushOpened* header) { header->leaving = true; }, +[](PushOpened* header) { header->report.tokens = 9; },
        +[](PushOpened* header) { header->layout_hash = 9; },
        +[](PushOpened* header) { header->sender.worker.incarnation = 9; }}) {
    static Ticket ticket = 100;
    PushOpened changed = Header(++ticket);
    change(&changed);
    Open(changed, {0, Size()});
    EXPECT_EQ(OnlyEvent<PushOpened>().ticket, ticket);
  }
}

TEST_F(PushTableTest, WrongBytesOnOneStreamAreTheEndOfAll) {
  Open(1, {0, Half()});
  Open(2, {Half(), Size() - Half()});
  Admit(1);
  EXPECT_TRUE(table_.OnPayloadEnded({2, absl::OutOfRangeError("gap"), false}, now_));
  EXPECT_EQ(OnlyEvent<PushVerified>().ticket, 1);
  table_.Refuse(1, absl::OutOfRangeError("gap"));
  EXPECT_EQ(Call(1).ended->code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Call(2).ended->code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(payloads_.size(), 0);
}

TEST_F(PushTableTest, AWrongStreamBesideAWholePayloadHarmsItselfOnly) {
  OpenWhole();
  Open(kTicket + 1, {0, Size()});
  Bring(kTicket, 0, 0, Size());
  End(kTicket);
  EXPECT_TRUE(table_.OnPayloadEnded({kTicket + 1, absl::OutOfRangeError("gap"), false}, now_));
  EXPECT_EQ(Call(kTicket + 1).ended->code(), absl::StatusCode::kOutOfRange);
  Check();
  EXPECT_TRUE(OnlyEvent<PushVerified>().status.ok());
}

// ---------------------------------------------------------------------------------------------------- cuts

TEST_F(PushTableTest, WithTheLastStreamThePushIsOffAndItsBytesStay) {
  Open(1, {0, Half()});
  Open(2, {Half(), Size() - Half()});
  Admit(1);
  Bring(1, 0, 0, 10);
  Bring(2, Half(), 0, 10);
  Lose(1);
  EXPECT_TRUE(events_.empty()) << "one is there";
  EXPECT_EQ(table_.Missing(kKey), (std::vector<ByteRange>{{10, Half() - 10}, {Half() + 10, Size() - Half() - 10}}));
  Lose(2);
  EXPECT_EQ(OnlyEvent<PushCancelled>().ticket, 1);
  EXPECT_EQ(payloads_.in_flight_bytes(), 0);
  EXPECT_EQ(table_.Missing(kKey), (std::vector<ByteRange>{{10, Half() - 10}, {Half() + 10, Size() - Half() - 10}}));

  // The next attempt is a new push for the core, and brings the rest.
  Open(7, {10, Half() - 10});
  Open(8, {Half() + 10, Size() - Half() - 10});
  Admit(7);
  Bring(7, 10, 0, Half() - 10);
  End(7);
  Bring(8, Half() + 10, 0, Size() - Half() - 10);
  End(8);
  Check();
  EXPECT_TRUE(OnlyEvent<PushVerified>().status.ok());
  EXPECT_EQ(table_.bytes_received(), Size()) << "nothing came twice";
}

TEST_F(PushTableTest, AStreamThatBreaksIsReplacedWhileTheOthersGoOn) {
  Open(1, {0, Half()});
  Open(2, {Half(), Size() - Half()});
  Admit(1);
  Bring(1, 0, 0, Half());
  End(1);
  Bring(2, Half(), 0, 5);
  CutShort(2);
  Lose(2);
  TickAfter(absl::Seconds(1));
  EXPECT_EQ(OnlyEvent<WorkerHeard>().sender.worker.name, "w");
  Open(3, {Half() + 5, Size() - Half() - 5});
  ASSERT_NE(Call(3).part, nullptr);
  Bring(3, Half() + 5, 0, Size() - Half() - 5);
  End(3);
  Check();
  EXPECT_TRUE(OnlyEvent<PushVerified>().status.ok());
}

TEST_F(PushTableTest, MissingOfWhatIsNotThere) {
  EXPECT_TRUE(table_.Missing(kKey).empty());
  OpenWhole();
  EXPECT_TRUE(table_.Missing(kKey).empty()) << "nothing came: all is to be sent";
  Bring(kTicket, 0, 0, Size());
  EXPECT_EQ(table_.Missing(kKey), (std::vector<ByteRange>{{Size(), 0}}));
  EXPECT_TRUE(table_.Missing({{"w", 2}, 0, 0}).empty());
}

TEST_F(PushTableTest, WhatNobodyAsksForGoes) {
  OpenWhole();
  Bring(kTicket, 0, 0, 10);
  Lose(kTicket);
  EXPECT_EQ(payloads_.size(), 1);
  TickAfter(kStallTimeout - absl::Milliseconds(1));
  EXPECT_EQ(payloads_.size(), 1);
  TickAfter(absl::Milliseconds(1));
  EXPECT_EQ(payloads_.size(), 0);
  EXPECT_TRUE(table_.Missing(kKey).empty());
}

// ---------------------------------------------------------------------------------------------------- stalls

TEST_F(PushTableTest, WhatDoesNotMoveIsCut) {
  OpenWhole();
  TickAfter(kStallTimeout - absl::Milliseconds(1));
  EXPECT_FALSE(Call(kTicket).ended.has_value());
  TickAfter(absl::Milliseconds(1));
  EXPECT_EQ(Call(kTicket).ended->code(), absl::StatusCode::kDeadlineExceeded);
  OnlyEvent<PushCancelled>();
  EXPECT_EQ(payloads_.size(), 0);
}

TEST_F(PushTableTest, OneStreamThatDoesNotMoveIsCutAlone) {
  Open(1, {0, Half()});
  Open(2, {Half(), Size() - Half()});
  Admit(1);
  Bring(1, 0, 0, Half());
  End(1);
  TickAfter(kStallTimeout);
  EXPECT_FALSE(Call(1).ended.has_value());
  EXPECT_EQ(Call(2).ended->code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(PushTableTest, StreamsWhoseRestNobodyBringsAreCut) {
  Open(1, {0, Half()});
  Admit(1);
  Bring(1, 0, 0, Half());
  End(1);
  TickAfter(kStallTimeout);
  EXPECT_EQ(Call(1).ended->code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(Call(1).ended->message()), HasSubstr(std::to_string(Half()) + " in all"));
  EXPECT_TRUE(std::holds_alternative<PushCancelled>(events_.back()));
  EXPECT_EQ(table_.Missing(kKey), (std::vector<ByteRange>{{Half(), Size() - Half()}}));
}

TEST_F(PushTableTest, AStreamWithoutHeaderIsCutAndTheCoreNotTold) {
  table_.Start({kTicket, &Call(kTicket)}, now_);
  TickAfter(kStallTimeout);
  EXPECT_EQ(Call(kTicket).ended->code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(events_.empty());
}

TEST_F(PushTableTest, BytesThatMoveAreHeard) {
  OpenWhole();
  Bring(kTicket, 0, 0, 10);
  TickAfter(absl::Seconds(1));
  EXPECT_EQ(OnlyEvent<WorkerHeard>().sender.worker.name, "w");
  TickAfter(absl::Seconds(1));
  EXPECT_TRUE(events_.empty());
}

// ---------------------------------------------------------------------------------------------------- memory

TEST_F(PushTableTest, WhatDoesNotFitWaitsItsTurn) {
  ASSERT_TRUE(payloads_.Admit(99, {{{"v", 1}, 0, 0}, "d", 1000}).ok());
  OpenWhole();
  EXPECT_FALSE(Call(kTicket).ended.has_value());
  EXPECT_EQ(Call(kTicket).part, nullptr);
  Open(kTicket + 1, {0, Size()});  // joins it
  TickAfter(absl::Milliseconds(200));
  EXPECT_EQ(Call(kTicket).part, nullptr);
  payloads_.Drop(99);
  TickAfter(absl::Milliseconds(200));
  EXPECT_NE(Call(kTicket).part, nullptr);
  EXPECT_NE(Call(kTicket + 1).part, nullptr);
  EXPECT_TRUE(events_.empty());
}

TEST_F(PushTableTest, NobodyIsOvertakenWhileWaiting) {
  ASSERT_TRUE(payloads_.Admit(99, {{{"v", 1}, 0, 0}, "d", 950}).ok());
  OpenWhole();
  PushOpened small = Header(kTicket + 1);
  small.sender.worker.name = "small";
  small.payload_bytes = 20;
  Open(small, {0, 20});
  ASSERT_EQ(OnlyEvent<PushOpened>().ticket, kTicket + 1);
  table_.Admit({kTicket + 1, 20}, now_);
  EXPECT_EQ(Call(kTicket + 1).part, nullptr);
  Lose(kTicket);
  OnlyEvent<PushCancelled>();
  TickAfter(absl::Milliseconds(200));
  EXPECT_NE(Call(kTicket + 1).part, nullptr);
}

TEST_F(PushTableTest, WhatFindsNoRoomForLongIsToldToComeBack) {
  ASSERT_TRUE(payloads_.Admit(99, {{{"v", 1}, 0, 0}, "d", 1000}).ok());
  OpenWhole();
  TickAfter(kStallTimeout / 2 - absl::Milliseconds(1));
  EXPECT_FALSE(Call(kTicket).ended.has_value());
  TickAfter(absl::Milliseconds(1));
  EXPECT_EQ(Call(kTicket).ended->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(OnlyEvent<PushCancelled>().ticket, kTicket);
}

TEST_F(PushTableTest, WithoutARoomOnTheDiskItIsRefusedAtOnce) {
  records_.full = absl::ResourceExhaustedError("the disk is full");
  OpenWhole();
  EXPECT_EQ(Call(kTicket).ended, records_.full);
  EXPECT_EQ(OnlyEvent<PushCancelled>().ticket, kTicket);
}

}  // namespace
}  // namespace autoloco::server
