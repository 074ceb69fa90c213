// A block's bytes around its body: header and checksum. README.md has the table. Everything here that reads
// takes hostile bytes: a size is compared with what the layout allows before it is used.
#ifndef AUTOLOCO_COMMON_CODEC_BLOCK_FORMAT_H_
#define AUTOLOCO_COMMON_CODEC_BLOCK_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/codec/codec.h"
#include "common/codec/quantizer.h"

namespace autoloco {

inline constexpr std::size_t kBlockHeaderBytes = 20;  // part of the wire format
inline constexpr std::size_t kUnitBytes = 4;          // part of the wire format

// REQUIRES: a quantized codec.
Packing PackingOf(Codec codec);
// Bytes in front of the coded ones in a body: the units of a quantized block.
std::size_t PrefixBytes(Codec codec, std::uint64_t value_count);
// Bytes that the values of a block become before zstd: planes or packed symbols.
std::size_t CodedBytes(Codec codec, std::uint64_t value_count);

struct BlockHeader {
  std::uint32_t index = 0;
  std::uint8_t codec = 0;
  std::uint8_t stored = 0;  // kStoredZstd or kStoredRaw
  std::uint16_t zero = 0;
  std::uint32_t body_bytes = 0;
  std::uint64_t checksum = 0;
};
inline constexpr std::uint8_t kStoredZstd = 0;
inline constexpr std::uint8_t kStoredRaw = 1;

// REQUIRES: kBlockHeaderBytes bytes.
BlockHeader ReadHeader(const std::byte* bytes);
// What a header may say of block `index` with `value_count` values; everything but the checksum.
absl::Status CheckHeader(const BlockHeader& header, Codec codec, std::uint64_t index, std::uint64_t value_count);
// The body of a whole block, header and checksum checked.
absl::StatusOr<std::span<const std::byte>> OpenBlock(std::span<const std::byte> block, Codec codec, std::uint32_t index,
                                                     std::uint64_t value_count, BlockHeader* header);
// Appends header and body. `checksum` is computed.
void AppendBlock(BlockHeader header, std::span<const std::byte> body, std::string* payload);

template <typename... Parts>
absl::Status RefuseBlock(std::uint64_t index, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("block ", index, ": ", parts...));
}

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CODEC_BLOCK_FORMAT_H_
