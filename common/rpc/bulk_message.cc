#include "common/rpc/bulk_message.h"

#include <string>
#include <utility>

#include "common/base/check.h"

namespace autoloco {
namespace {

void Release(void* owner) { delete static_cast<std::shared_ptr<const void>*>(owner); }

grpc::Slice Share(absl::string_view data, std::shared_ptr<const void> owner) {
  return grpc::Slice(const_cast<char*>(data.data()), data.size(), Release,
                     new std::shared_ptr<const void>(std::move(owner)));
}

grpc::ByteBuffer Join(const std::string& prefix, absl::string_view data, std::shared_ptr<const void> owner) {
  const grpc::Slice slices[] = {grpc::Slice(prefix), Share(data, std::move(owner))};
  return grpc::ByteBuffer(slices, 2);
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

grpc::ByteBuffer MakeChunkMessage(std::uint64_t offset, absl::string_view data, std::shared_ptr<const void> owner) {
  return Join(ChunkPrefix(offset, data.size()), data, std::move(owner));
}

grpc::ByteBuffer MakeLiveBlockMessage(std::uint64_t block, std::uint64_t version, absl::string_view data,
                                      std::shared_ptr<const void> owner) {
  return Join(LiveBlockPrefix(block, version, data.size()), data, std::move(owner));
}

grpc::ByteBuffer ToBytes(const google::protobuf::MessageLite& message) { return OfText(message.SerializeAsString()); }

}  // namespace autoloco
