#include "server/runtime/payload_store.h"

#include <gtest/gtest.h>

#include "tests/support/runtime_fakes.h"

namespace autoloco::server {
namespace {

TEST(PayloadStoreTest, AdmitsWhatFits) {
  FakeRecordStore room;
  PayloadStore store(100, 10, &room);
  EXPECT_TRUE(store.Admit(1, 60).ok());
  EXPECT_EQ(store.Admit(2, 41).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(store.Admit(2, 40).ok());
  EXPECT_EQ(store.in_flight_bytes(), 100);
}

TEST(PayloadStoreTest, AcceptedPayloadsStayUnderTheirKeyWithoutBeingInFlight) {
  FakeRecordStore room;
  PayloadStore store(100, 10, &room);
  const PushKey key{{"w", 2}, 7, 0};
  const std::shared_ptr<Payload> payload = *store.Admit(1, 100);
  store.Keep(1, key);
  store.Keep(1, {{"w", 2}, 8, 0});  // nothing is there any more
  EXPECT_EQ(store.in_flight_bytes(), 0);
  EXPECT_EQ(store.Find(1), nullptr);
  EXPECT_EQ(store.Find(key), payload);
  EXPECT_EQ(store.size(), 1);
  EXPECT_TRUE(store.Admit(2, 100).ok());
}

TEST(PayloadStoreTest, AcceptedPayloadsGoOneByOneOrByTheirRound) {
  FakeRecordStore room;
  PayloadStore store(100, 10, &room);
  Ticket ticket = 1;
  for (const char* name : {"a", "b"}) {
    for (const Round round : {6, 7}) {
      ASSERT_TRUE(store.Admit(ticket, 10).ok());
      store.Keep(ticket++, {{name, 1}, round, 0});
    }
  }
  store.DropBefore(7);
  EXPECT_EQ(store.Find(PushKey{{"b", 1}, 6, 0}), nullptr);
  store.Drop(PushKey{{"a", 1}, 7, 0});
  EXPECT_EQ(store.Find(PushKey{{"a", 1}, 7, 0}), nullptr);
  EXPECT_NE(store.Find(PushKey{{"b", 1}, 7, 0}), nullptr);
  EXPECT_EQ(store.size(), 1);
}

TEST(PayloadStoreTest, DroppedPayloadsAreGone) {
  FakeRecordStore room;
  PayloadStore store(100, 10, &room);
  ASSERT_TRUE(store.Admit(1, 100).ok());
  store.Drop(1);
  store.Drop(1);
  EXPECT_EQ(store.Find(1), nullptr);
  EXPECT_EQ(store.in_flight_bytes(), 0);
  EXPECT_EQ(store.size(), 0);
}

TEST(PayloadStoreTest, AFullDiskTurnsAPushAway) {
  FakeRecordStore room;
  PayloadStore store(100, 10, &room);
  room.full = absl::ResourceExhaustedError("the disk is full");
  EXPECT_EQ(store.Admit(1, 10).status(), room.full);
  EXPECT_EQ(store.in_flight_bytes(), 0);
  room.full = absl::OkStatus();
  EXPECT_TRUE(store.Admit(1, 10).ok());
}

TEST(PayloadStoreTest, RestoredOnesAreFoundByTheirKey) {
  FakeRecordStore room;
  PayloadStore store(100, 10, &room);
  const PushKey key{{"w", 2}, 7, 0};
  store.Put(key, Payload::Whole(*AllocatePayloadMemory(5)));
  ASSERT_NE(store.Find(key), nullptr);
  EXPECT_TRUE(store.Find(key)->CheckWhole().ok());
  EXPECT_EQ(store.in_flight_bytes(), 0);
}

}  // namespace
}  // namespace autoloco::server
