#include "common/rpc/bulk_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "autoloco/v1/parameter_server.pb.h"
#include "common/base/random.h"

namespace autoloco {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

std::string Join(const std::vector<absl::string_view>& pieces) {
  std::string joined;
  for (const absl::string_view piece : pieces) joined.append(piece.data(), piece.size());
  return joined;
}

// In pieces of `size` bytes, with an empty one in between.
std::vector<absl::string_view> Cut(const std::string& message, std::size_t size) {
  std::vector<absl::string_view> pieces = {""};
  for (std::size_t offset = 0; offset < message.size(); offset += size) {
    pieces.push_back(absl::string_view(message).substr(offset, size));
    pieces.emplace_back();
  }
  return pieces;
}

// `message` must outlive the fields.
absl::Status Parse(const std::string& message, BulkFields* fields) { return ParseBulk(Cut(message, 1000), fields); }

v1::PushHeader SomeHeader() {
  v1::PushHeader header;
  header.mutable_identity()->set_worker("dc1");
  header.set_payload_bytes(kLargest);
  header.set_first_byte(17);
  header.mutable_report()->set_loss_mean(2.5);
  return header;
}

std::string Serialized(std::uint64_t offset, const std::string& data) {
  v1::PushRequest message;
  message.mutable_chunk()->set_offset(offset);
  message.mutable_chunk()->set_data(data);
  return message.SerializeAsString();
}

std::string Serialized(std::uint64_t block, std::uint64_t version, const std::string& data) {
  v1::PullReply message;
  message.mutable_live_block()->set_block(block);
  message.mutable_live_block()->set_version(version);
  message.mutable_live_block()->set_data(data);
  return message.SerializeAsString();
}

TEST(BulkWireTest, WritesWhatProtobufWrites) {
  for (const std::size_t size : {0, 1, 127, 128, 16'384, 262'144}) {
    const std::string data(size, 'x');
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{300}, kLargest}) {
      EXPECT_EQ(ChunkPrefix(offset, size) + data, Serialized(offset, data)) << offset << " " << size;
      EXPECT_EQ(LiveBlockPrefix(offset, 0, size) + data, Serialized(offset, 0, data));
      EXPECT_EQ(LiveBlockPrefix(3, offset, size) + data, Serialized(3, offset, data));
    }
  }
  v1::PushRequest message;
  *message.mutable_header() = SomeHeader();
  EXPECT_EQ(HeaderMessage(SomeHeader().SerializeAsString()), message.SerializeAsString());
}

TEST(BulkWireTest, ReadsWhatProtobufWrites) {
  BulkFields fields;
  for (const std::size_t size : {0, 1, 5, 262'144}) {
    const std::string data(size, 'x');
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{300}, kLargest}) {
      const std::string chunk = Serialized(offset, data);
      ASSERT_TRUE(Parse(chunk, &fields).ok());
      EXPECT_EQ(fields.kind, BulkKind::kChunk);
      EXPECT_EQ(fields.offset, offset);
      EXPECT_EQ(fields.data_bytes, size);
      EXPECT_EQ(Join(fields.data), data);
      const std::string block = Serialized(9, offset, data);
      ASSERT_TRUE(Parse(block, &fields).ok());
      EXPECT_EQ(fields.kind, BulkKind::kLiveBlock);
      EXPECT_EQ(fields.block, 9u);
      EXPECT_EQ(fields.version, offset);
      EXPECT_EQ(Join(fields.data), data);
    }
  }
  ASSERT_TRUE(Parse(HeaderMessage(SomeHeader().SerializeAsString()), &fields).ok());
  EXPECT_EQ(fields.kind, BulkKind::kHeader);
  v1::PushHeader header;
  ASSERT_TRUE(header.ParseFromString(fields.header));
  EXPECT_EQ(header.SerializeAsString(), SomeHeader().SerializeAsString());
  ASSERT_TRUE(Parse("", &fields).ok());
  EXPECT_EQ(fields.kind, BulkKind::kNone);
}

TEST(BulkWireTest, PiecesOfEverySizeGiveTheSame) {
  const std::string message = Serialized(1'000'000, "twenty bytes of data");
  for (std::size_t size = 1; size <= message.size(); ++size) {
    BulkFields fields;
    ASSERT_TRUE(ParseBulk(Cut(message, size), &fields).ok()) << size;
    EXPECT_EQ(fields.offset, 1'000'000u);
    EXPECT_EQ(Join(fields.data), "twenty bytes of data");
  }
}

TEST(BulkWireTest, UnknownFieldsAreSkippedAndTheLastOneCounts) {
  const std::string unknown(
      "\x7A\x02hi"
      "\x20\x05"
      "\x29"
      "12345678"
      "\x35"
      "1234",
      20);
  BulkFields fields;
  const std::string message = unknown + Serialized(5, "first") + unknown + Serialized(6, "second") + unknown;
  ASSERT_TRUE(Parse(message, &fields).ok());
  EXPECT_EQ(fields.kind, BulkKind::kChunk);
  EXPECT_EQ(fields.offset, 6u);
  EXPECT_EQ(Join(fields.data), "second");
  ASSERT_TRUE(Parse(unknown, &fields).ok());
  EXPECT_EQ(fields.kind, BulkKind::kNone);
  // The number of the kind with another wire type is another field.
  ASSERT_TRUE(Parse("\x10\x05", &fields).ok());
  EXPECT_EQ(fields.kind, BulkKind::kNone);
}

// Every message that ends too early inside a field is refused.
TEST(BulkWireTest, TruncationsAreRefused) {
  v1::PushRequest header;
  *header.mutable_header() = SomeHeader();
  for (const std::string& message :
       {header.SerializeAsString(), Serialized(300, "some data"), Serialized(7, 300, "some data")}) {
    for (std::size_t size = 1; size < message.size(); ++size) {
      BulkFields fields;
      EXPECT_EQ(Parse(message.substr(0, size), &fields).code(), absl::StatusCode::kInvalidArgument) << size;
    }
  }
}

TEST(BulkWireTest, LiesAreRefused) {
  const std::string lies[] = {
      std::string("\x12\x05\x12\x7F"
                  "abc",
                  7),  // data beyond its chunk
      std::string("\x12\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"
                  "abc",
                  14),  // 2^64 - 1 bytes
      std::string("\x12\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02"
                  "abc",
                  14),  // more than 64 bits
      std::string("\x12\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"
                  "abc",
                  15),  // eleven bytes of a number
      std::string("\x02\x01"
                  "a",
                  3),                      // field 0
      std::string("\x13\x14", 2),          // a group
      std::string("\x16", 1),              // wire type 6
      std::string("\x12\x02\x0B\x0C", 4),  // a group inside
      HeaderMessage(std::string(kBulkHeaderBytesMax + 1, 'x')),
  };
  for (const std::string& lie : lies) {
    BulkFields fields;
    EXPECT_EQ(Parse(lie, &fields).code(), absl::StatusCode::kInvalidArgument) << ::testing::PrintToString(lie);
  }
}

// Damage in every place: what is read lies inside the message, and protobuf agrees with what is taken for a chunk.
TEST(BulkWireTest, DamageIsRefusedOrReadAsProtobufReadsIt) {
  const std::string good = Serialized(300, "some data") + std::string("\x20\x05", 2);
  const RandomStream random(3, 1);
  int taken = 0;
  for (std::uint64_t trial = 0; trial < 20'000; ++trial) {
    std::string message = good;
    for (std::uint64_t i = 0; i < 1 + trial % 3; ++i) {
      const std::uint64_t bits = random.Bits(trial * 3 + i);
      message[bits % message.size()] ^= static_cast<char>(1 + (bits >> 32) % 255);
    }
    BulkFields fields;
    if (!ParseBulk(Cut(message, 1 + trial % 7), &fields).ok() || fields.kind != BulkKind::kChunk) continue;
    v1::PushRequest read;
    ASSERT_TRUE(read.ParseFromString(message)) << ::testing::PrintToString(message);
    ASSERT_TRUE(read.has_chunk());
    EXPECT_EQ(read.chunk().offset(), fields.offset);
    EXPECT_EQ(read.chunk().data(), Join(fields.data));
    ++taken;
  }
  EXPECT_GT(taken, 1000);
}

}  // namespace
}  // namespace autoloco
