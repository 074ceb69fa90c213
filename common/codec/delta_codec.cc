#include "common/codec/delta_codec.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "zstd.h"

namespace autoloco {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

constexpr std::size_t kHashedHeaderBytes = 12;  // the header without its checksum
constexpr std::uint8_t kStoredZstd = 0;
constexpr std::uint8_t kStoredRaw = 1;

struct BlockHeader {
  std::uint32_t index = 0;
  std::uint8_t codec = 0;
  std::uint8_t stored = 0;
  std::uint16_t zero = 0;
  std::uint32_t body_bytes = 0;
  std::uint64_t checksum = 0;
};

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

void WriteHeader(const BlockHeader& header, std::byte* bytes) {
  std::memcpy(bytes, &header.index, 4);
  std::memcpy(bytes + 4, &header.codec, 1);
  std::memcpy(bytes + 5, &header.stored, 1);
  std::memcpy(bytes + 6, &header.zero, 2);
  std::memcpy(bytes + 8, &header.body_bytes, 4);
  std::memcpy(bytes + 12, &header.checksum, 8);
}

constexpr std::size_t PlaneCount(Codec codec) { return codec == Codec::kFp32 ? 4 : 2; }

bool IsKnown(Codec codec) { return codec == Codec::kFp32 || codec == Codec::kBf16; }

// Nearest bf16, ties to even. A NaN stays one: its quiet bit is set, so that cutting its fraction cannot give infinity.
std::uint16_t ToBf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded);
}

// Plane k holds byte k, least significant first, of every value.
void SplitPlanes(std::span<const float> values, Codec codec, std::uint8_t* planes) {
  const std::size_t n = values.size();
  if (codec == Codec::kFp32) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(values[i]);
      planes[i] = static_cast<std::uint8_t>(bits);
      planes[n + i] = static_cast<std::uint8_t>(bits >> 8);
      planes[2 * n + i] = static_cast<std::uint8_t>(bits >> 16);
      planes[3 * n + i] = static_cast<std::uint8_t>(bits >> 24);
    }
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint16_t bits = ToBf16(values[i]);
    planes[i] = static_cast<std::uint8_t>(bits);
    planes[n + i] = static_cast<std::uint8_t>(bits >> 8);
  }
}

void JoinPlanes(const std::uint8_t* planes, Codec codec, std::span<float> values) {
  const std::size_t n = values.size();
  if (codec == Codec::kFp32) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t bits = planes[i] | static_cast<std::uint32_t>(planes[n + i]) << 8 |
                                 static_cast<std::uint32_t>(planes[2 * n + i]) << 16 |
                                 static_cast<std::uint32_t>(planes[3 * n + i]) << 24;
      values[i] = std::bit_cast<float>(bits);
    }
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t bits = planes[i] | static_cast<std::uint32_t>(planes[n + i]) << 8;
    values[i] = std::bit_cast<float>(bits << 16);
  }
}

template <typename... Parts>
absl::Status Refuse(std::uint64_t index, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("block ", index, ": ", parts...));
}

// What a header may say of block `index` with `value_count` values; everything but the checksum.
absl::Status CheckHeader(const BlockHeader& header, Codec codec, std::uint64_t index, std::uint64_t value_count) {
  const std::uint64_t plane_bytes = value_count * PlaneCount(codec);
  if (header.index != index) return Refuse(index, "want its index, got ", header.index);
  if (header.codec != static_cast<std::uint8_t>(codec)) {
    return Refuse(index, "want codec ", static_cast<int>(codec), ", got ", static_cast<int>(header.codec));
  }
  if (header.stored > kStoredRaw) return Refuse(index, "want stored 0 or 1, got ", static_cast<int>(header.stored));
  if (header.zero != 0) return Refuse(index, "want zero in the reserved field, got ", header.zero);
  if (header.stored == kStoredRaw && header.body_bytes != plane_bytes) {
    return Refuse(index, "want ", plane_bytes, " raw bytes, got ", header.body_bytes);
  }
  if (header.stored == kStoredZstd && header.body_bytes >= plane_bytes) {
    return Refuse(index, "want fewer than ", plane_bytes, " compressed bytes, got ", header.body_bytes);
  }
  return absl::OkStatus();
}

}  // namespace

std::uint64_t MaxPayloadBytes(std::uint64_t value_count, Codec codec) {
  return BlockCount(value_count) * kBlockHeaderBytes + value_count * PlaneCount(codec);
}

struct BlockEncoder::State {
  Codec codec;
  ZSTD_CCtx* context;
  std::vector<std::uint8_t> planes;
};

BlockEncoder::BlockEncoder(Codec codec, int zstd_level) : state_(std::make_unique<State>()) {
  AUTOLOCO_CHECK(IsKnown(codec));
  state_->codec = codec;
  state_->context = ZSTD_createCCtx();
  AUTOLOCO_CHECK(state_->context != nullptr);
  // zstd clamps the level to what it knows. The content size is in every frame: ZSTD_compress2 knows it.
  ZSTD_CCtx_setParameter(state_->context, ZSTD_c_compressionLevel, zstd_level);
  ZSTD_CCtx_setParameter(state_->context, ZSTD_c_contentSizeFlag, 1);
  ZSTD_CCtx_setParameter(state_->context, ZSTD_c_checksumFlag, 0);
  state_->planes.resize(kBlockValues * PlaneCount(codec));
}

BlockEncoder::~BlockEncoder() { ZSTD_freeCCtx(state_->context); }

void BlockEncoder::Append(std::uint32_t index, std::span<const float> values, std::string* payload) {
  AUTOLOCO_CHECK(!values.empty());
  AUTOLOCO_CHECK(values.size() <= kBlockValues);
  const std::size_t plane_bytes = values.size() * PlaneCount(state_->codec);
  SplitPlanes(values, state_->codec, state_->planes.data());
  const std::size_t start = payload->size();
  payload->resize(start + kBlockHeaderBytes + plane_bytes);
  std::byte* const header_bytes = reinterpret_cast<std::byte*>(payload->data()) + start;
  std::byte* const body = header_bytes + kBlockHeaderBytes;
  // One byte less than raw: a block that zstd does not shrink fails here and is stored as it is.
  const std::size_t compressed =
      ZSTD_compress2(state_->context, body, plane_bytes - 1, state_->planes.data(), plane_bytes);
  const bool raw = ZSTD_isError(compressed) != 0;
  if (raw) std::memcpy(body, state_->planes.data(), plane_bytes);
  BlockHeader header;
  header.index = index;
  header.codec = static_cast<std::uint8_t>(state_->codec);
  header.stored = raw ? kStoredRaw : kStoredZstd;
  header.body_bytes = static_cast<std::uint32_t>(raw ? plane_bytes : compressed);
  WriteHeader(header, header_bytes);
  header.checksum = Hash64({header_bytes, kHashedHeaderBytes}, {body, header.body_bytes});
  WriteHeader(header, header_bytes);
  payload->resize(start + kBlockHeaderBytes + header.body_bytes);
}

struct BlockDecoder::State {
  ZSTD_DCtx* context;
  std::vector<std::uint8_t> planes;
};

BlockDecoder::BlockDecoder() : state_(std::make_unique<State>()) {
  state_->context = ZSTD_createDCtx();
  AUTOLOCO_CHECK(state_->context != nullptr);
  state_->planes.resize(kBlockValues * PlaneCount(Codec::kFp32));
}

BlockDecoder::~BlockDecoder() { ZSTD_freeDCtx(state_->context); }

absl::Status BlockDecoder::Decode(std::span<const std::byte> block, Codec codec, std::uint32_t index,
                                  std::span<float> values) {
  AUTOLOCO_CHECK(!values.empty());
  AUTOLOCO_CHECK(values.size() <= kBlockValues);
  if (!IsKnown(codec)) return Refuse(index, "unknown codec ", static_cast<int>(codec));
  if (block.size() < kBlockHeaderBytes) {
    return Refuse(index, "want at least ", kBlockHeaderBytes, " bytes, got ", block.size());
  }
  const BlockHeader header = ReadHeader(block.data());
  AUTOLOCO_RETURN_IF_ERROR(CheckHeader(header, codec, index, values.size()));
  const std::span<const std::byte> body = block.subspan(kBlockHeaderBytes);
  if (body.size() != header.body_bytes) {
    return Refuse(index, "want a body of ", header.body_bytes, " bytes, got ", body.size());
  }
  if (Hash64(block.first(kHashedHeaderBytes), body) != header.checksum) {
    return absl::DataLossError(absl::StrCat("block ", index, ": checksum does not match"));
  }
  if (header.stored == kStoredRaw) {
    JoinPlanes(reinterpret_cast<const std::uint8_t*>(body.data()), codec, values);
    return absl::OkStatus();
  }
  // The frame must be one, whole, and own up to the size that the layout says. It is decoded straight into a buffer of
  // that size: its window takes no memory, whatever it claims.
  const std::size_t plane_bytes = values.size() * PlaneCount(codec);
  if (ZSTD_getFrameContentSize(body.data(), body.size()) != plane_bytes) {
    return Refuse(index, "the zstd frame does not declare ", plane_bytes, " bytes");
  }
  if (ZSTD_findFrameCompressedSize(body.data(), body.size()) != body.size()) {
    return Refuse(index, "the body is not exactly one zstd frame");
  }
  const std::size_t got =
      ZSTD_decompressDCtx(state_->context, state_->planes.data(), plane_bytes, body.data(), body.size());
  if (ZSTD_isError(got) != 0) return Refuse(index, "zstd: ", ZSTD_getErrorName(got));
  if (got != plane_bytes) return Refuse(index, "want ", plane_bytes, " bytes from zstd, got ", got);
  JoinPlanes(state_->planes.data(), codec, values);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::uint64_t>> IndexBlocks(std::span<const std::byte> payload, std::uint64_t value_count,
                                                       Codec codec) {
  if (!IsKnown(codec)) return absl::InvalidArgumentError(absl::StrCat("unknown codec ", static_cast<int>(codec)));
  const std::uint64_t block_count = BlockCount(value_count);
  if (payload.size() / kBlockHeaderBytes < block_count) {  // before memory is taken for the offsets
    return absl::InvalidArgumentError(
        absl::StrCat("a payload of ", payload.size(), " bytes cannot hold ", block_count, " blocks"));
  }
  std::vector<std::uint64_t> offsets;
  offsets.reserve(block_count + 1);
  std::uint64_t offset = 0;
  for (std::uint64_t index = 0; index < block_count; ++index) {
    const std::uint64_t rest = payload.size() - offset;
    if (rest < kBlockHeaderBytes) return Refuse(index, "the payload ends at byte ", payload.size(), ", in its header");
    const BlockHeader header = ReadHeader(payload.data() + offset);
    AUTOLOCO_RETURN_IF_ERROR(CheckHeader(header, codec, index, BlockSize(value_count, index)));
    if (rest - kBlockHeaderBytes < header.body_bytes) {
      return Refuse(index, "the payload ends at byte ", payload.size(), ", in its body");
    }
    offsets.push_back(offset);
    offset += kBlockHeaderBytes + header.body_bytes;
  }
  if (offset != payload.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("want ", offset, " bytes in ", block_count, " blocks, got ", payload.size()));
  }
  offsets.push_back(offset);
  return offsets;
}

std::optional<Codec> CodecOf(std::span<const std::byte> payload) {
  if (payload.size() < kBlockHeaderBytes) return std::nullopt;
  const auto codec = static_cast<Codec>(ReadHeader(payload.data()).codec);
  if (!IsKnown(codec)) return std::nullopt;
  return codec;
}

std::string EncodeVector(std::span<const float> values, Codec codec, int zstd_level) {
  BlockEncoder encoder(codec, zstd_level);
  std::string payload;
  for (std::uint64_t index = 0; index < BlockCount(values.size()); ++index) {
    encoder.Append(static_cast<std::uint32_t>(index),
                   values.subspan(index * kBlockValues, BlockSize(values.size(), index)), &payload);
  }
  return payload;
}

absl::Status DecodeVector(std::span<const std::byte> payload, Codec codec, std::span<float> values) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> offsets, IndexBlocks(payload, values.size(), codec));
  BlockDecoder decoder;
  for (std::uint64_t index = 0; index + 1 < offsets.size(); ++index) {
    AUTOLOCO_RETURN_IF_ERROR(decoder.Decode(payload.subspan(offsets[index], offsets[index + 1] - offsets[index]), codec,
                                            static_cast<std::uint32_t>(index),
                                            values.subspan(index * kBlockValues, BlockSize(values.size(), index))));
  }
  return absl::OkStatus();
}

}  // namespace autoloco
