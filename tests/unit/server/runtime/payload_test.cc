#include "server/runtime/payload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace autoloco::server {
namespace {

std::shared_ptr<Payload> TenBytes() { return *Payload::Allocate(10, 4); }

TEST(PayloadTest, ChunksInOrderMakeTheWhole) {
  const std::shared_ptr<Payload> payload = TenBytes();
  EXPECT_TRUE(payload->Take(0, "abcd").ok());
  EXPECT_TRUE(payload->Take(4, "efgh").ok());
  EXPECT_EQ(payload->CheckWhole().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(payload->received(), 8);
  EXPECT_TRUE(payload->Take(8, "ij").ok());
  EXPECT_TRUE(payload->CheckWhole().ok());
  EXPECT_EQ(std::memcmp(payload->bytes().data(), "abcdefghij", 10), 0);
}

TEST(PayloadTest, GapsAndOverlapsAreOutOfRange) {
  const std::shared_ptr<Payload> payload = TenBytes();
  EXPECT_EQ(payload->Take(1, "a").code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(payload->Take(0, "abcd").ok());
  for (const std::uint64_t offset : {0, 3, 5}) {
    EXPECT_EQ(payload->Take(offset, "x").code(), absl::StatusCode::kOutOfRange) << offset;
  }
  EXPECT_EQ(payload->received(), 4);
}

TEST(PayloadTest, MoreThanAnnouncedIsOutOfRange) {
  const std::shared_ptr<Payload> payload = TenBytes();
  ASSERT_TRUE(payload->Take(0, "abcd").ok());
  ASSERT_TRUE(payload->Take(4, "efgh").ok());
  const absl::Status status = payload->Take(8, "ijk");
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("want 10 bytes"));
  EXPECT_EQ(payload->received(), 8);
}

TEST(PayloadTest, ChunksAreBounded) {
  const std::shared_ptr<Payload> payload = TenBytes();
  EXPECT_EQ(payload->Take(0, "abcde").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(payload->Take(0, "").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(payload->received(), 0);
}

TEST(PayloadTest, TruncationSaysHowMuchCame) {
  const std::shared_ptr<Payload> payload = TenBytes();
  ASSERT_TRUE(payload->Take(0, "abcd").ok());
  EXPECT_THAT(std::string(payload->CheckWhole().message()), ::testing::HasSubstr("want 10 bytes"));
  EXPECT_THAT(std::string(payload->CheckWhole().message()), ::testing::HasSubstr("after 4"));
}

}  // namespace
}  // namespace autoloco::server
