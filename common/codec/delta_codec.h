// The delta codec: flat fp32 values <-> payload bytes, block by block. The only place that orders the stages
// (convert, split into byte planes, zstd, checksum). common/codec/README.md writes the format down.
//
// A payload is the blocks 0, 1, ... of the flat vector, one after another, each `kBlockValues` values (the last one
// shorter) and self-contained:
//
//   u32 index | u8 codec | u8 stored (0 zstd, 1 raw) | u16 zero | u32 body_bytes | u64 XXH3-64 of header and body |
//   body
//
// Every decoder takes hostile bytes: sizes are bounded by the value count before memory is taken or read.
#ifndef AUTOLOCO_COMMON_CODEC_DELTA_CODEC_H_
#define AUTOLOCO_COMMON_CODEC_DELTA_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace autoloco {

// Part of the wire format: don't change a value.
enum class Codec : std::uint8_t {
  kFp32 = 1,  // lossless
  kBf16 = 2,  // rounded to nearest even; NaN stays NaN
};

inline constexpr std::uint64_t kBlockValues = 65536;  // part of the wire format
inline constexpr std::size_t kBlockHeaderBytes = 20;  // part of the wire format

inline std::uint64_t BlockCount(std::uint64_t value_count) { return (value_count + kBlockValues - 1) / kBlockValues; }
// Values in block `index` of a vector of `value_count`. REQUIRES: index < BlockCount(value_count).
inline std::uint64_t BlockSize(std::uint64_t value_count, std::uint64_t index) {
  const std::uint64_t begin = index * kBlockValues;
  return value_count - begin < kBlockValues ? value_count - begin : kBlockValues;
}

// Largest payload that `value_count` values can take under `codec`: what a receiver may be asked to hold.
std::uint64_t MaxPayloadBytes(std::uint64_t value_count, Codec codec);

// Encodes blocks. Keeps a zstd context; not thread-safe, one a thread.
class BlockEncoder {
 public:
  BlockEncoder(Codec codec, int zstd_level);
  ~BlockEncoder();
  BlockEncoder(const BlockEncoder&) = delete;
  BlockEncoder& operator=(const BlockEncoder&) = delete;

  // Appends block `index` to `payload`. REQUIRES: 1 <= values.size() <= kBlockValues. Same values, codec and level
  // give the same bytes (for one version of libzstd).
  void Append(std::uint32_t index, std::span<const float> values, std::string* payload);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Decodes blocks. Keeps a zstd context; not thread-safe, one a thread.
class BlockDecoder {
 public:
  BlockDecoder();
  ~BlockDecoder();
  BlockDecoder(const BlockDecoder&) = delete;
  BlockDecoder& operator=(const BlockDecoder&) = delete;

  // Decodes one block, header included, into `values` (exactly filled).
  // DATA_LOSS: checksum. INVALID_ARGUMENT: index, codec, sizes or frame are not those of this block. Messages name the
  // block. `values` is undefined on error.
  absl::Status Decode(std::span<const std::byte> block, Codec codec, std::uint32_t index, std::span<float> values);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Where each block of a payload lies: offsets[i] .. offsets[i + 1]; BlockCount + 1 entries, the last one the payload's
// size. Walks the headers only: INVALID_ARGUMENT when they do not tile the payload exactly (a missing, extra or
// reordered block, a size beyond the bound); no checksum is verified.
absl::StatusOr<std::vector<std::uint64_t>> IndexBlocks(std::span<const std::byte> payload, std::uint64_t value_count,
                                                       Codec codec);

// The codec that the first block of a payload names: what a stored one was written with. Empty: none that is known.
std::optional<Codec> CodecOf(std::span<const std::byte> payload);

// All of `values`, one thread.
std::string EncodeVector(std::span<const float> values, Codec codec, int zstd_level);
// The reverse; `values` is undefined on error. Errors as IndexBlocks and BlockDecoder::Decode.
absl::Status DecodeVector(std::span<const std::byte> payload, Codec codec, std::span<float> values);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CODEC_DELTA_CODEC_H_
