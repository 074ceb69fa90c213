// The delta codec: flat fp32 values <-> payload bytes, block by block. The only place that orders the stages
// (quantize or split into byte planes, zstd, checksum). common/codec/README.md writes the format down.
//
// A payload is the blocks 0, 1, ... of the flat vector, one after another, each `kBlockValues` values (the last one
// shorter) and self-contained. A block is worked on in the processor's cache: what is quantized, what stays behind and
// what the other side will hold come out of the same pass.
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
#include "common/codec/codec.h"

namespace autoloco {

// Largest payload that `value_count` values can take under `codec`: what a receiver may be asked to hold. REQUIRES: a
// known codec.
std::uint64_t MaxPayloadBytes(std::uint64_t value_count, Codec codec);

// Encodes blocks. Keeps a zstd context and a block's scratch; not thread-safe, one a thread. Same values, residual and
// coding give the same bytes, on every processor (for one version of libzstd).
//
// REQUIRES everywhere: 1 <= values.size() <= kBlockValues; other spans of the same size, none overlapping another.
class BlockEncoder {
 public:
  explicit BlockEncoder(const Coding& coding);
  BlockEncoder(Codec codec, int zstd_level) : BlockEncoder(Coding{.codec = codec, .zstd_level = zstd_level}) {}
  ~BlockEncoder();
  BlockEncoder(const BlockEncoder&) = delete;
  BlockEncoder& operator=(const BlockEncoder&) = delete;

  // Appends block `index` to `payload`. REQUIRES: a codec that takes every value, i.e. fp32 or bf16.
  void Append(std::uint32_t index, std::span<const float> values, std::string* payload);

  // The same for every codec, with a report. INVALID_ARGUMENT, under a quantized codec: a value that is not finite,
  // named by its index in the vector; nothing is appended then.
  absl::StatusOr<CodingReport> Encode(std::uint32_t index, std::span<const float> values, std::string* payload);

  // Error feedback: what is sent is v = values + residual, and what stays behind, next = v - decoded, is to be the
  // residual of the next delta, in fp32, each operation rounded. `next` may be `residual` itself (a sender that may
  // have to take the delta back keeps both). INVALID_ARGUMENT: a v that is not finite, or, under bf16, rounds to
  // infinity; nothing is appended then and `next` is unchanged.
  absl::StatusOr<CodingReport> EncodeWithResidual(std::uint32_t index, std::span<const float> values,
                                                  std::span<const float> residual, std::span<float> next,
                                                  std::string* payload);

  // Also adds what every reader will decode to `view`, in fp32, each sum rounded: for a sender that keeps what its readers
  // hold, as they will do to it. Errors as EncodeWithResidual; `view` is unchanged then.
  absl::StatusOr<CodingReport> EncodeAndAdd(std::uint32_t index, std::span<const float> values, std::span<float> view,
                                            std::string* payload);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A coded block, header included, and what its values count for.
struct WeightedBlock {
  std::span<const std::byte> bytes;
  Codec codec = Codec::kFp32;
  float weight = 1;
};

// Decodes blocks. Keeps a zstd context and scratch for some blocks; not thread-safe, one a thread.
class BlockDecoder {
 public:
  BlockDecoder();
  ~BlockDecoder();
  BlockDecoder(const BlockDecoder&) = delete;
  BlockDecoder& operator=(const BlockDecoder&) = delete;

  // Whether Decode would take the block, at the price of no more than finding out. `squared_norm` becomes the sum of the
  // squares of its `count` values (fp64; the same on every processor): not finite where a value is not. Errors as Decode.
  absl::Status Check(std::span<const std::byte> block, Codec codec, std::uint32_t index, std::size_t count,
                     double* squared_norm);

  // Decodes one block, header included, into `values` (exactly filled).
  // DATA_LOSS: checksum. INVALID_ARGUMENT: index, codec, sizes, unit, symbols or frame are not those of this block.
  // Messages name the block. `values` is unchanged on error. REQUIRES: 1 <= values.size() <= kBlockValues.
  // `squared_norm`, unless null, becomes the sum of the squares of the values, as by Check.
  absl::Status Decode(std::span<const std::byte> block, Codec codec, std::uint32_t index, std::span<float> values,
                      double* squared_norm = nullptr);

  // sum[i] = sum[i] + weight * value i, in fp32, the product rounded, then the sum. Errors and requirements as Decode.
  absl::Status DecodeAdd(std::span<const std::byte> block, Codec codec, std::uint32_t index, float weight,
                         std::span<float> sum, double* squared_norm = nullptr);

  // sum[i] = w0 * v0 + w1 * v1 + ..., value i of each of `blocks`, in this order, each product rounded, then each sum:
  // what Decode, scaling and DecodeAdd give one after the other, at less cost. All are block `index` of their payloads.
  // `squared_norms` become those of the blocks, without weights. Errors as Decode, for the first block that has one;
  // `*damaged` is its place in `blocks` then, and `sum` undefined. REQUIRES: one block at least, one norm for each.
  absl::Status Sum(std::span<const WeightedBlock> blocks, std::uint32_t index, std::span<float> sum,
                   std::span<double> squared_norms, std::size_t* damaged);

 private:
  struct Slot;
  struct Coded;
  struct State;
  // Everything between the bytes of a block and its coded bytes: checks, zstd.
  absl::StatusOr<Coded> Open(std::span<const std::byte> block, Codec codec, std::uint32_t index, std::size_t count,
                             Slot* slot);
  double SquaredNorm(const Coded& coded, Codec codec, std::size_t count) const;
  // sum = the opened blocks' weighted sum, with `add` on top of what was there. REQUIRES: one block, or quantized ones.
  void AddUp(std::span<const Coded> blocks, Codec codec, bool add, std::span<float> sum) const;

  std::unique_ptr<State> state_;
};

// Where each block of a payload lies: offsets[i] .. offsets[i + 1]; BlockCount + 1 entries, the last one the payload's
// size. Walks the headers only: INVALID_ARGUMENT when they do not tile the payload exactly (a missing, extra or
// reordered block, a size beyond the bound); no checksum is verified.
absl::StatusOr<std::vector<std::uint64_t>> IndexBlocks(std::span<const std::byte> payload, std::uint64_t value_count,
                                                       Codec codec);

// The codec that the first block of a payload names: what a stored one was written with. Empty: none that is known.
std::optional<Codec> CodecOf(std::span<const std::byte> payload);

// All of `values`, one thread. REQUIRES: fp32 or bf16.
std::string EncodeVector(std::span<const float> values, Codec codec, int zstd_level);
// The same for every codec, no residual. Errors as BlockEncoder::Encode; `report` may be null.
absl::StatusOr<std::string> EncodeVector(std::span<const float> values, const Coding& coding, CodingReport* report);
// The reverse; `values` is undefined on error. Errors as IndexBlocks and BlockDecoder::Decode.
absl::Status DecodeVector(std::span<const std::byte> payload, Codec codec, std::span<float> values);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CODEC_DELTA_CODEC_H_
