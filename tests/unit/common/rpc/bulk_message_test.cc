#include "common/rpc/bulk_message.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "autoloco/v1/parameter_server.pb.h"

namespace autoloco {
namespace {

std::string Flat(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  EXPECT_TRUE(buffer.DumpToSingleSlice(&slice).ok());
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

std::string Join(const std::vector<absl::string_view>& pieces) {
  std::string joined;
  for (const absl::string_view piece : pieces) joined.append(piece.data(), piece.size());
  return joined;
}

TEST(BulkMessageTest, AChunkIsReadByProtobufAndKeepsItsOwner) {
  auto owner = std::make_shared<const std::string>(100'000, 'x');
  {
    const grpc::ByteBuffer buffer = MakeChunkMessage(7, *owner, owner);
    EXPECT_EQ(owner.use_count(), 2);
    v1::PullReply message;
    ASSERT_TRUE(message.ParseFromString(Flat(buffer)));
    EXPECT_EQ(message.chunk().offset(), 7u);
    EXPECT_EQ(message.chunk().data(), *owner);
  }
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(BulkMessageTest, AChunkMayLieInPieces) {
  auto owner = std::make_shared<const std::string>("abcdef");
  const std::vector<absl::string_view> pieces = {absl::string_view(*owner).substr(4),
                                                 absl::string_view(*owner).substr(0, 4)};
  v1::PullReply message;
  ASSERT_TRUE(message.ParseFromString(Flat(MakeChunkMessage(7, pieces, owner))));
  EXPECT_EQ(message.chunk().data(), "efabcd");
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(BulkMessageTest, WhatIsSentIsRead) {
  auto owner = std::make_shared<const std::string>(100'000, 'x');
  ReceivedBulk received;
  grpc::ByteBuffer buffer = MakeChunkMessage(7, *owner, owner);
  ASSERT_TRUE(received.Parse(&buffer).ok());
  EXPECT_EQ(buffer.Length(), 0u);
  EXPECT_EQ(received.fields().kind, BulkKind::kChunk);
  EXPECT_EQ(received.fields().offset, 7u);
  EXPECT_EQ(Join(received.fields().data), *owner);
  received.Clear();
  EXPECT_EQ(owner.use_count(), 1);

  buffer = MakeLiveBlockMessage(3, 12, "abc", owner);
  ASSERT_TRUE(received.Parse(&buffer).ok());
  EXPECT_EQ(received.fields().kind, BulkKind::kLiveBlock);
  EXPECT_EQ(received.fields().block, 3u);
  EXPECT_EQ(received.fields().version, 12u);
  EXPECT_EQ(Join(received.fields().data), "abc");

  v1::PushHeader header;
  header.set_round(5);
  buffer = MakeHeaderMessage(header);
  ASSERT_TRUE(received.Parse(&buffer).ok());
  v1::PushHeader read;
  ASSERT_TRUE(received.ParseHeader(&read).ok());
  EXPECT_EQ(read.round(), 5u);
}

TEST(BulkMessageTest, WhatIsNoMessageIsRefused) {
  ReceivedBulk received;
  grpc::ByteBuffer nothing;
  EXPECT_EQ(received.Parse(&nothing).code(), absl::StatusCode::kInvalidArgument);
  const grpc::Slice cut_short(std::string("\x12\x05"));
  grpc::ByteBuffer buffer(&cut_short, 1);
  EXPECT_EQ(received.Parse(&buffer).code(), absl::StatusCode::kInvalidArgument);
  const grpc::Slice no_header(HeaderMessage("\xFF\xFF"));
  buffer = grpc::ByteBuffer(&no_header, 1);
  ASSERT_TRUE(received.Parse(&buffer).ok());
  v1::PushHeader header;
  EXPECT_EQ(received.ParseHeader(&header).code(), absl::StatusCode::kInvalidArgument);
}

TEST(BulkMessageTest, AnyMessageAsBytes) {
  v1::PushReply reply;
  reply.set_reason("late");
  v1::PushReply read;
  ASSERT_TRUE(read.ParseFromString(Flat(ToBytes(reply))));
  EXPECT_EQ(read.reason(), "late");
  ASSERT_TRUE(FromBytes(ToBytes(reply), &read).ok());
  EXPECT_EQ(read.reason(), "late");
  const grpc::Slice none(std::string("\xFF\xFF"));
  EXPECT_EQ(FromBytes(grpc::ByteBuffer(&none, 1), &read).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace autoloco
