// The bulk messages of common/rpc/bulk_wire.h in gRPC's own buffers: payload bytes are neither copied into a message
// nor out of one.
#ifndef AUTOLOCO_COMMON_RPC_BULK_MESSAGE_H_
#define AUTOLOCO_COMMON_RPC_BULK_MESSAGE_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/rpc/bulk_wire.h"

namespace autoloco {

// A message that was received. Not thread-safe; used for one message after another.
class ReceivedBulk {
 public:
  ReceivedBulk() = default;
  ReceivedBulk(const ReceivedBulk&) = delete;
  ReceivedBulk& operator=(const ReceivedBulk&) = delete;

  // Takes the bytes out of `buffer`, which is empty afterwards, and reads them. Errors as ParseBulk.
  absl::Status Parse(grpc::ByteBuffer* buffer);

  // Valid until the next Parse or Clear. REQUIRES: Parse was OK.
  const BulkFields& fields() const { return fields_; }
  // The header as a message. INVALID_ARGUMENT: it is none. REQUIRES: fields().kind is kHeader.
  absl::Status ParseHeader(google::protobuf::MessageLite* header) const;

  // Lets go of the bytes.
  void Clear();

 private:
  std::vector<grpc::Slice> slices_;
  std::vector<absl::string_view> pieces_;
  BulkFields fields_;
};

// The whole message around a header (PushHeader, PullHeader).
grpc::ByteBuffer MakeHeaderMessage(const google::protobuf::MessageLite& header);

// One chunk or block. The bytes of `data`, one piece or several in order, are sent from where they lie: they must not
// change while gRPC holds them, and `owner` is held for as long as that.
grpc::ByteBuffer MakeChunkMessage(std::uint64_t offset, std::span<const absl::string_view> data,
                                  const std::shared_ptr<const void>& owner);
grpc::ByteBuffer MakeChunkMessage(std::uint64_t offset, absl::string_view data,
                                  const std::shared_ptr<const void>& owner);
grpc::ByteBuffer MakeLiveBlockMessage(std::uint64_t block, std::uint64_t version, absl::string_view data,
                                      const std::shared_ptr<const void>& owner);

// Any message, for methods whose handlers speak bytes both ways. INVALID_ARGUMENT: the bytes are none.
grpc::ByteBuffer ToBytes(const google::protobuf::MessageLite& message);
absl::Status FromBytes(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite* message);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_RPC_BULK_MESSAGE_H_
