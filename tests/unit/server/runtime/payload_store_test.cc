#include "server/runtime/payload_store.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/runtime_fakes.h"

namespace autoloco::server {
namespace {

const Instant kStart = absl::UnixEpoch();

AnnouncedPayload Announced(const std::string& worker, std::uint64_t bytes) {
  return {{{worker, 1}, 5, 0}, "digest", bytes};
}

class PayloadStoreTest : public ::testing::Test {
 protected:
  // A push that broke after one byte.
  void SetAside(Ticket ticket, const AnnouncedPayload& announced, Instant when) {
    ASSERT_TRUE(store_.Admit(ticket, announced).ok());
    EXPECT_TRUE(store_.Find(ticket)->Put(0, "x").ok());
    store_.SetAside(ticket, when);
  }

  FakeRecordStore room_;
  PayloadStore store_{100, &room_};
};

TEST_F(PayloadStoreTest, AdmitsWhatFits) {
  EXPECT_TRUE(store_.Admit(1, Announced("a", 60)).ok());
  EXPECT_FALSE(store_.HasRoom(Announced("b", 41)));
  EXPECT_EQ(store_.Admit(2, Announced("b", 41)).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(store_.HasRoom(Announced("b", 40)));
  EXPECT_TRUE(store_.Admit(2, Announced("b", 40)).ok());
  EXPECT_EQ(store_.in_flight_bytes(), 100);
}

TEST_F(PayloadStoreTest, AcceptedPayloadsStayUnderTheirKeyWithoutBeingInFlight) {
  const PushKey key{{"w", 2}, 7, 0};
  const std::shared_ptr<Payload> payload = *store_.Admit(1, {key, "digest", 100});
  store_.Keep(1, key);
  store_.Keep(1, {{"w", 2}, 8, 0});  // nothing is there any more
  EXPECT_EQ(store_.in_flight_bytes(), 0);
  EXPECT_EQ(store_.Find(1), nullptr);
  EXPECT_EQ(store_.Find(key), payload);
  EXPECT_EQ(store_.size(), 1);
  EXPECT_TRUE(store_.Admit(2, Announced("a", 100)).ok());
}

TEST_F(PayloadStoreTest, AcceptedPayloadsGoOneByOneOrByTheirRound) {
  Ticket ticket = 1;
  for (const char* name : {"a", "b"}) {
    for (const Round round : {6, 7}) {
      ASSERT_TRUE(store_.Admit(ticket, {{{name, 1}, round, 0}, "digest", 10}).ok());
      store_.Keep(ticket++, {{name, 1}, round, 0});
    }
  }
  store_.DropBefore(7);
  EXPECT_EQ(store_.Find(PushKey{{"b", 1}, 6, 0}), nullptr);
  store_.Drop(PushKey{{"a", 1}, 7, 0});
  EXPECT_EQ(store_.Find(PushKey{{"a", 1}, 7, 0}), nullptr);
  EXPECT_NE(store_.Find(PushKey{{"b", 1}, 7, 0}), nullptr);
  EXPECT_EQ(store_.size(), 1);
}

TEST_F(PayloadStoreTest, DroppedPayloadsAreGone) {
  ASSERT_TRUE(store_.Admit(1, Announced("a", 100)).ok());
  store_.Drop(1);
  store_.Drop(1);
  EXPECT_EQ(store_.Find(1), nullptr);
  EXPECT_EQ(store_.in_flight_bytes(), 0);
  EXPECT_EQ(store_.size(), 0);
}

TEST_F(PayloadStoreTest, AFullDiskTurnsAPushAway) {
  room_.full = absl::ResourceExhaustedError("the disk is full");
  EXPECT_EQ(store_.Admit(1, Announced("a", 10)).status(), room_.full);
  EXPECT_EQ(store_.in_flight_bytes(), 0);
  room_.full = absl::OkStatus();
  EXPECT_TRUE(store_.Admit(1, Announced("a", 10)).ok());
}

TEST_F(PayloadStoreTest, RestoredOnesAreFoundByTheirKey) {
  const PushKey key{{"w", 2}, 7, 0};
  store_.Put(key, Payload::Whole(*AllocatePayloadMemory(5)));
  ASSERT_NE(store_.Find(key), nullptr);
  EXPECT_TRUE(store_.Find(key)->whole());
  EXPECT_EQ(store_.in_flight_bytes(), 0);
}

TEST_F(PayloadStoreTest, TheSamePushGoesOnWithWhatCame) {
  SetAside(1, Announced("a", 80), kStart);
  EXPECT_EQ(store_.in_flight_bytes(), 0);
  ASSERT_NE(store_.FindAside(Announced("a", 80).key), nullptr);
  EXPECT_TRUE(store_.HasRoom(Announced("a", 80)));
  const std::shared_ptr<Payload> again = *store_.Admit(2, Announced("a", 80));
  EXPECT_EQ(again->received(), 1);
  EXPECT_EQ(store_.FindAside(Announced("a", 80).key), nullptr);
  EXPECT_EQ(store_.in_flight_bytes(), 80);
}

TEST_F(PayloadStoreTest, AnotherDeltaUnderTheKeyStartsAnew) {
  SetAside(1, Announced("a", 80), kStart);
  AnnouncedPayload other = Announced("a", 80);
  other.digest = "another";
  EXPECT_EQ((*store_.Admit(2, other))->received(), 0);
  EXPECT_EQ(store_.FindAside(other.key), nullptr);
}

TEST_F(PayloadStoreTest, APushWithoutBytesLeavesNothing) {
  ASSERT_TRUE(store_.Admit(1, Announced("a", 80)).ok());
  store_.SetAside(1, kStart);
  store_.SetAside(9, kStart);
  EXPECT_EQ(store_.size(), 0);
}

TEST_F(PayloadStoreTest, WhatIsSetAsideGivesWayTheOldestFirst) {
  SetAside(1, Announced("a", 40), kStart + absl::Seconds(1));
  SetAside(2, Announced("b", 40), kStart);
  ASSERT_TRUE(store_.Admit(3, Announced("c", 20)).ok());
  EXPECT_EQ(store_.size(), 3);
  ASSERT_TRUE(store_.Admit(4, Announced("d", 30)).ok());
  EXPECT_EQ(store_.FindAside(Announced("b", 40).key), nullptr);
  EXPECT_NE(store_.FindAside(Announced("a", 40).key), nullptr);
  // What is left of it is out of the count: all of the room can be had.
  ASSERT_TRUE(store_.Admit(5, Announced("e", 50)).ok());
  EXPECT_EQ(store_.FindAside(Announced("a", 40).key), nullptr);
  EXPECT_FALSE(store_.HasRoom(Announced("f", 1)));
}

TEST_F(PayloadStoreTest, WhatIsSetAsideGoesWithTime) {
  SetAside(1, Announced("a", 40), kStart);
  SetAside(2, Announced("b", 40), kStart + absl::Seconds(1));
  store_.DropAsideUntil(kStart);
  EXPECT_EQ(store_.FindAside(Announced("a", 40).key), nullptr);
  EXPECT_NE(store_.FindAside(Announced("b", 40).key), nullptr);
  EXPECT_EQ(store_.size(), 1);
}

}  // namespace
}  // namespace autoloco::server
