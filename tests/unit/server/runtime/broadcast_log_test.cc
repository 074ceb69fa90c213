#include "server/runtime/broadcast_log.h"

#include <gtest/gtest.h>

namespace autoloco::server {
namespace {

std::shared_ptr<const EncodedPayload> Broadcast(Version version) {
  return std::make_shared<const EncodedPayload>(
      EncodedPayload::Header{.form = PullForm::kBroadcast, .version = version}, std::vector<std::string>{"b"});
}

TEST(BroadcastLogTest, KeepsTheNewest) {
  BroadcastLog log(2);
  EXPECT_EQ(log.Find(PullForm::kBroadcast, 1), nullptr);
  for (Version version = 1; version <= 4; ++version) log.Add(Broadcast(version));
  EXPECT_EQ(log.Find(PullForm::kBroadcast, 2), nullptr);
  ASSERT_NE(log.Find(PullForm::kBroadcast, 3), nullptr);
  EXPECT_EQ(log.Find(PullForm::kBroadcast, 3)->header().version, 3);
  EXPECT_NE(log.Find(PullForm::kBroadcast, 4), nullptr);
  EXPECT_EQ(log.Find(PullForm::kBroadcast, 5), nullptr);
}

TEST(BroadcastLogTest, ABroadcastIsNoWholeVersion) {
  BroadcastLog log(1);
  log.Add(Broadcast(1));
  EXPECT_EQ(log.Find(PullForm::kFull, 1), nullptr);
}

}  // namespace
}  // namespace autoloco::server
