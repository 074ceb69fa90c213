#include "server/runtime/payload_store.h"

#include <gtest/gtest.h>

namespace autoloco::server {
namespace {

TEST(PayloadStoreTest, AdmitsWhatFits) {
  PayloadStore store(100, 10);
  EXPECT_TRUE(store.Admit(1, 60).ok());
  EXPECT_EQ(store.Admit(2, 41).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(store.Admit(2, 40).ok());
  EXPECT_EQ(store.in_flight_bytes(), 100);
}

TEST(PayloadStoreTest, SettledPayloadsStayWithoutBeingInFlight) {
  PayloadStore store(100, 10);
  ASSERT_TRUE(store.Admit(1, 100).ok());
  store.Settle(1);
  store.Settle(1);
  EXPECT_EQ(store.in_flight_bytes(), 0);
  EXPECT_NE(store.Find(1), nullptr);
  EXPECT_TRUE(store.Admit(2, 100).ok());
}

TEST(PayloadStoreTest, DroppedPayloadsAreGone) {
  PayloadStore store(100, 10);
  ASSERT_TRUE(store.Admit(1, 100).ok());
  store.Drop(1);
  store.Drop(1);
  EXPECT_EQ(store.Find(1), nullptr);
  EXPECT_EQ(store.in_flight_bytes(), 0);
  EXPECT_EQ(store.size(), 0);
}

}  // namespace
}  // namespace autoloco::server
