#include "common/rpc/bulk_message.h"

#include <string>
#include <utility>

#include "common/base/check.h"

namespace autoloco {
namespace {

void Release(void* owner) { delete static_cast<std::shared_ptr<const void>*>(owner); }

grpc::Slice Share(absl::string_view data, const std::shared_ptr<const void>& owner) {
  return grpc::Slice(const_cast<char*>(data.data()), data.size(), Release, new std::shared_ptr<const void>(owner));
}

grpc::ByteBuffer Join(const std::string& prefix, std::span<const absl::string_view> data,
                      const std::shared_ptr<const void>& owner) {
  std::vector<grpc::Slice> slices;
  slices.reserve(1 + data.size());
  slices.emplace_back(prefix);
  for (const absl::string_view piece : data) slices.push_back(Share(piece, owner));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

grpc::ByteBuffer OfText(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

absl::Status ReceivedBulk::Parse(grpc::ByteBuffer* buffer) {
  Clear();
  // Compressed messages are expanded by gRPC before they come here.
  if (!buffer->Dump(&slices_).ok()) return absl::InvalidArgumentError("malformed message: it cannot be read");
  buffer->Clear();
  for (const grpc::Slice& slice : slices_) {
    pieces_.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return ParseBulk(pieces_, &fields_);
}

absl::Status ReceivedBulk::ParseHeader(google::protobuf::MessageLite* header) const {
  AUTOLOCO_CHECK(fields_.kind == BulkKind::kHeader);
  if (header->ParseFromString(fields_.header)) return absl::OkStatus();
  return absl::InvalidArgumentError("malformed message: its header is none");
}

void ReceivedBulk::Clear() {
  fields_.kind = BulkKind::kNone;
  fields_.data.clear();
  pieces_.clear();
  slices_.clear();
}

grpc::ByteBuffer MakeHeaderMessage(const google::protobuf::MessageLite& header) {
  return OfText(HeaderMessage(header.SerializeAsString()));
}

grpc::ByteBuffer MakeChunkMessage(std::uint64_t offset, std::span<const absl::string_view> data,
                                  const std::shared_ptr<const void>& owner) {
  std::uint64_t bytes = 0;
  for (const absl::string_view piece : data) bytes += piece.size();
  return Join(ChunkPrefix(offset, bytes), data, owner);
}

grpc::ByteBuffer MakeChunkMessage(std::uint64_t offset, absl::string_view data,
                                  const std::shared_ptr<const void>& owner) {
  return MakeChunkMessage(offset, std::span(&data, 1), owner);
}

grpc::ByteBuffer MakeLiveBlockMessage(std::uint64_t block, std::uint64_t version, absl::string_view data,
                                      const std::shared_ptr<const void>& owner) {
  return Join(LiveBlockPrefix(block, version, data.size()), std::span(&data, 1), owner);
}

grpc::ByteBuffer ToBytes(const google::protobuf::MessageLite& message) { return OfText(message.SerializeAsString()); }

absl::Status FromBytes(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite* message) {
  grpc::Slice slice;
  if (bytes.DumpToSingleSlice(&slice).ok() && message->ParseFromArray(slice.begin(), static_cast<int>(slice.size()))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("malformed message");
}

}  // namespace autoloco
