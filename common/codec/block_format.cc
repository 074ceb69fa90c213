#include "common/codec/block_format.h"

#include <bit>
#include <cstring>

#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/codec/byte_planes.h"

namespace autoloco {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

constexpr std::size_t kHashedHeaderBytes = 12;  // the header without its checksum

void WriteHeader(const BlockHeader& header, std::byte* bytes) {
  std::memcpy(bytes, &header.index, 4);
  std::memcpy(bytes + 4, &header.codec, 1);
  std::memcpy(bytes + 5, &header.stored, 1);
  std::memcpy(bytes + 6, &header.zero, 2);
  std::memcpy(bytes + 8, &header.body_bytes, 4);
  std::memcpy(bytes + 12, &header.checksum, 8);
}

}  // namespace

Packing PackingOf(Codec codec) {
  AUTOLOCO_CHECK(IsQuantized(codec));
  if (codec == Codec::kRms4) return Packing::kNibble;
  return codec == Codec::kTernary ? Packing::kTernary : Packing::kByte;
}

std::size_t PrefixBytes(Codec codec, std::uint64_t value_count) {
  return IsQuantized(codec) ? UnitCount(PackingOf(codec), value_count) * kUnitBytes : 0;
}

std::size_t CodedBytes(Codec codec, std::uint64_t value_count) {
  return IsQuantized(codec) ? PackedBytes(PackingOf(codec), value_count) : value_count * PlaneCount(codec);
}

BlockHeader ReadHeader(const std::byte* bytes) {
  BlockHeader header;
  std::memcpy(&header.index, bytes, 4);
  std::memcpy(&header.codec, bytes + 4, 1);
  std::memcpy(&header.stored, bytes + 5, 1);
  std::memcpy(&header.zero, bytes + 6, 2);
  std::memcpy(&header.body_bytes, bytes + 8, 4);
  std::memcpy(&header.checksum, bytes + 12, 8);
  return header;
}

absl::Status CheckHeader(const BlockHeader& header, Codec codec, std::uint64_t index, std::uint64_t value_count) {
  const std::uint64_t prefix_bytes = PrefixBytes(codec, value_count);
  const std::uint64_t raw_bytes = prefix_bytes + CodedBytes(codec, value_count);
  if (header.index != index) return RefuseBlock(index, "want its index, got ", header.index);
  if (header.codec != static_cast<std::uint8_t>(codec)) {
    return RefuseBlock(index, "want codec ", static_cast<int>(codec), ", got ", static_cast<int>(header.codec));
  }
  if (header.stored > kStoredRaw) {
    return RefuseBlock(index, "want stored 0 or 1, got ", static_cast<int>(header.stored));
  }
  if (header.zero != 0) return RefuseBlock(index, "want zero in the reserved field, got ", header.zero);
  if (header.stored == kStoredRaw && header.body_bytes != raw_bytes) {
    return RefuseBlock(index, "want ", raw_bytes, " raw bytes, got ", header.body_bytes);
  }
  if (header.stored == kStoredZstd && header.body_bytes >= raw_bytes) {
    return RefuseBlock(index, "want fewer than ", raw_bytes, " compressed bytes, got ", header.body_bytes);
  }
  if (header.body_bytes < prefix_bytes) {
    return RefuseBlock(index, "want units of ", prefix_bytes, " bytes, got a body of ", header.body_bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::span<const std::byte>> OpenBlock(std::span<const std::byte> block, Codec codec, std::uint32_t index,
                                                     std::uint64_t value_count, BlockHeader* header) {
  if (block.size() < kBlockHeaderBytes) {
    return RefuseBlock(index, "want at least ", kBlockHeaderBytes, " bytes, got ", block.size());
  }
  *header = ReadHeader(block.data());
  AUTOLOCO_RETURN_IF_ERROR(CheckHeader(*header, codec, index, value_count));
  const std::span<const std::byte> body = block.subspan(kBlockHeaderBytes);
  if (body.size() != header->body_bytes) {
    return RefuseBlock(index, "want a body of ", header->body_bytes, " bytes, got ", body.size());
  }
  if (Hash64(block.first(kHashedHeaderBytes), body) != header->checksum) {
    return absl::DataLossError(absl::StrCat("block ", index, ": checksum does not match"));
  }
  return body;
}

void AppendBlock(BlockHeader header, std::span<const std::byte> body, std::string* payload) {
  std::byte bytes[kBlockHeaderBytes];
  header.body_bytes = static_cast<std::uint32_t>(body.size());
  WriteHeader(header, bytes);
  header.checksum = Hash64({bytes, kHashedHeaderBytes}, body);
  WriteHeader(header, bytes);
  payload->append(reinterpret_cast<const char*>(bytes), sizeof(bytes));
  payload->append(reinterpret_cast<const char*>(body.data()), body.size());
}

}  // namespace autoloco
