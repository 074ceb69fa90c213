// The messages that carry bulk bytes, PushRequest and PullReply, read and written by hand: protobuf would copy every
// payload byte once more on each side. The wire form is protobuf's own, so a peer may as well use the generated
// classes.
//
//   PushRequest { header: PushHeader = 1 | chunk: Chunk = 2 }
//   PullReply   { header: PullHeader = 1 | chunk: Chunk = 2 | live_block: LiveBlock = 3 }
//   Chunk       { offset: uint64 = 1, data: bytes = 2 }
//   LiveBlock   { block: uint64 = 1, version: uint64 = 2, data: bytes = 3 }
//
// A message lies in several pieces of memory, as it came from the network. Numbers are 64 bits; what is not known is
// skipped, as protobuf does; of a field that comes twice the last one counts.
#ifndef AUTOLOCO_COMMON_RPC_BULK_WIRE_H_
#define AUTOLOCO_COMMON_RPC_BULK_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace autoloco {

// Longest header message that is taken.
inline constexpr std::size_t kBulkHeaderBytesMax = 32 * 1024;

// Values are those of the field numbers.
enum class BulkKind { kNone = 0, kHeader = 1, kChunk = 2, kLiveBlock = 3 };

struct BulkFields {
  BulkKind kind = BulkKind::kNone;      // none: an empty message, or of a kind that is not known here
  std::string header;                   // kHeader: the header message, serialized
  std::uint64_t offset = 0;             // kChunk
  std::uint64_t block = 0;              // kLiveBlock
  std::uint64_t version = 0;            // kLiveBlock
  std::vector<absl::string_view> data;  // kChunk, kLiveBlock: in order, none of them empty; inside the message
  std::size_t data_bytes = 0;           // of all of `data`
};

// Reads one message that lies in `pieces`, in order. INVALID_ARGUMENT: it is none, or its header is too long; `fields`
// is then unspecified.
absl::Status ParseBulk(std::span<const absl::string_view> pieces, BulkFields* fields);

// What stands before the data in a message of this kind: the message is this and then `data_bytes` bytes.
std::string ChunkPrefix(std::uint64_t offset, std::uint64_t data_bytes);
std::string LiveBlockPrefix(std::uint64_t block, std::uint64_t version, std::uint64_t data_bytes);
// The whole message around a serialized header.
std::string HeaderMessage(absl::string_view header);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_RPC_BULK_WIRE_H_
