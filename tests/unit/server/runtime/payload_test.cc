#include "server/runtime/payload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace autoloco::server {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<Payload> TenBytes() { return *Payload::Allocate(10); }

std::string TextOf(const Payload& payload) {
  return {reinterpret_cast<const char*>(payload.bytes().data()), payload.bytes().size()};
}

absl::Status Take(PayloadPart* part, std::uint64_t offset, absl::string_view text) {
  return part->Take(offset, std::span(&text, 1));
}

TEST(PayloadTest, PiecesInAnyOrderMakeTheWhole) {
  const std::shared_ptr<Payload> payload = TenBytes();
  EXPECT_TRUE(payload->Put(8, "ij").ok());
  const std::vector<absl::string_view> pieces = {"ab", "", "cde", "f"};
  EXPECT_TRUE(payload->Put(0, pieces).ok());
  EXPECT_EQ(payload->received(), 8);
  EXPECT_FALSE(payload->whole());
  EXPECT_EQ(payload->Missing(4), (std::vector<ByteRange>{{6, 2}}));
  EXPECT_TRUE(payload->Put(6, "gh").ok());
  EXPECT_TRUE(payload->whole());
  EXPECT_EQ(TextOf(*payload), "abcdefghij");
  EXPECT_TRUE(payload->Missing(4).empty());
}

TEST(PayloadTest, WhatComesAgainIsPassedOver) {
  const std::shared_ptr<Payload> payload = TenBytes();
  EXPECT_TRUE(payload->Put(2, "cd").ok());
  const std::vector<absl::string_view> pieces = {"ABCDE", "FGHIJ"};
  EXPECT_TRUE(payload->Put(0, pieces).ok());
  EXPECT_EQ(payload->received(), 10);
  EXPECT_EQ(TextOf(*payload), "ABcdEFGHIJ");
}

// Refuses what reaches over `limit`, as a bad disk does.
class BrokenMemory final : public PayloadMemory {
 public:
  std::span<const std::byte> bytes() const override { return bytes_; }
  absl::Status Write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (offset + bytes.size() > limit) return absl::UnavailableError("bad disk");
    std::memcpy(bytes_.data() + offset, bytes.data(), bytes.size());
    return absl::OkStatus();
  }

  std::size_t limit = 4;

 private:
  std::array<std::byte, 10> bytes_ = {};
};

TEST(PayloadTest, WhatCannotBeWrittenIsMissingStill) {
  auto memory = std::make_unique<BrokenMemory>();
  BrokenMemory* const disk = memory.get();
  Payload payload(std::move(memory));
  EXPECT_TRUE(payload.Put(2, "cd").ok());
  EXPECT_EQ(payload.Put(0, "abcdef").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(payload.received(), 2);
  EXPECT_EQ(payload.Missing(4), (std::vector<ByteRange>{{0, 2}, {4, 6}}));
  disk->limit = 10;
  EXPECT_TRUE(payload.Put(0, "abcdefghij").ok());
  EXPECT_TRUE(payload.whole());
  EXPECT_EQ(TextOf(payload), "abcdefghij");
}

TEST(PayloadTest, AWholeOneLacksNothing) {
  const std::shared_ptr<Payload> payload = Payload::Whole(*AllocatePayloadMemory(5));
  EXPECT_TRUE(payload->whole());
  EXPECT_TRUE(payload->Missing(4).empty());
}

TEST(PayloadTest, StreamsFillItSideBySide) {
  constexpr std::size_t kSize = 100'000;
  std::string text(kSize, '\0');
  for (std::size_t i = 0; i < kSize; ++i) text[i] = static_cast<char>(i % 251);
  const std::shared_ptr<Payload> payload = *Payload::Allocate(kSize);
  const auto fill = [&](std::size_t from) {  // overlapping: every byte comes twice
    for (std::size_t at = from; at < kSize; at += 1000) {
      if (!payload->Put(at, text.substr(at, 500)).ok()) return;
    }
  };
  std::vector<std::thread> threads;
  for (const std::size_t from : {0, 250, 500, 750}) threads.emplace_back(fill, from);
  fill(0);
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(payload->whole());
  EXPECT_EQ(TextOf(*payload), text);
}

TEST(PayloadPartTest, ChunksComeInOrder) {
  const std::shared_ptr<Payload> payload = TenBytes();
  PayloadPart part(payload, {2, 6}, 4);
  EXPECT_TRUE(Take(&part, 0, "cdef").ok());
  EXPECT_EQ(part.CheckWhole().code(), absl::StatusCode::kDataLoss);
  for (const std::uint64_t offset : {0, 3, 5}) {
    EXPECT_EQ(Take(&part, offset, "x").code(), absl::StatusCode::kOutOfRange) << offset;
  }
  EXPECT_EQ(part.taken(), 4);
  EXPECT_TRUE(Take(&part, 4, "gh").ok());
  EXPECT_TRUE(part.CheckWhole().ok());
  EXPECT_EQ(payload->Missing(4), (std::vector<ByteRange>{{0, 2}, {8, 2}}));
}

TEST(PayloadPartTest, MoreThanItsRangeIsOutOfRange) {
  const std::shared_ptr<Payload> payload = TenBytes();
  PayloadPart part(payload, {0, 10}, 4);
  ASSERT_TRUE(Take(&part, 0, "abcd").ok());
  ASSERT_TRUE(Take(&part, 4, "efgh").ok());
  const absl::Status status = Take(&part, 8, "ijk");
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("want 10 bytes"));
  EXPECT_EQ(payload->received(), 8);
}

TEST(PayloadPartTest, ChunksAreBounded) {
  const std::shared_ptr<Payload> payload = TenBytes();
  PayloadPart part(payload, {0, 10}, 4);
  EXPECT_EQ(Take(&part, 0, "abcde").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Take(&part, 0, "").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(payload->received(), 0);
}

TEST(PayloadPartTest, TruncationSaysHowMuchCame) {
  PayloadPart part(TenBytes(), {0, 10}, 4);
  ASSERT_TRUE(Take(&part, 0, "abcd").ok());
  EXPECT_THAT(std::string(part.CheckWhole().message()), HasSubstr("want 10 bytes"));
  EXPECT_THAT(std::string(part.CheckWhole().message()), HasSubstr("after 4"));
}

TEST(PayloadPartTest, AnEmptyRangeIsWholeAtOnce) {
  PayloadPart part(TenBytes(), {10, 0}, 4);
  EXPECT_TRUE(part.CheckWhole().ok());
  EXPECT_EQ(Take(&part, 0, "x").code(), absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace autoloco::server
