// The parameters that intervals start from, and what they are. While pulls bring them up to date each block is of a
// version of its own: a transfer that was cut goes on with the blocks that are missing, and blocks that were read from
// the server's live parameters at different times are brought to one version by the broadcasts in between.
#ifndef AUTOLOCO_WORKER_RUNTIME_BASE_BUFFER_H_
#define AUTOLOCO_WORKER_RUNTIME_BASE_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/byte_ranges.h"
#include "common/base/flat_buffer.h"
#include "common/base/ids.h"
#include "common/codec/delta_codec.h"
#include "worker/core/types.h"

namespace autoloco::worker {

// Not thread-safe, but Put and Add of different blocks may run at once.
class BaseBuffer {
 public:
  // Holds nothing. RESOURCE_EXHAUSTED when the memory cannot be had.
  static absl::StatusOr<BaseBuffer> Allocate(std::uint64_t value_count);
  BaseBuffer() = default;

  std::span<const float> values() const { return values_.values(); }
  std::uint64_t block_count() const { return versions_.size(); }

  // What a server has to know of it.
  struct Held {
    std::optional<Version> version;  // none: nothing whole. Mixed: of the oldest block
    std::string digest;              // of all values, hex XXH3-128; empty where it is mixed or nothing
    bool mixed = false;              // blocks of several versions
    bool operator==(const Held&) const = default;
  };
  const Held& held() const { return held_; }

  // A transfer that has begun and has not brought all of its blocks.
  struct Unfinished {
    PullForm form = PullForm::kNothing;
    Version version = 0;
    std::uint64_t first_block = 0;  // that is missing
    bool operator==(const Unfinished&) const = default;
  };
  std::optional<Unfinished> unfinished() const;
  // The blocks that are missing of it, in order, counted as ByteRange counts bytes; empty: none is unfinished.
  std::vector<ByteRange> MissingBlocks() const;

  // A transfer of all blocks begins (full: they are of `version`; live: each is of its own), or the broadcast that
  // turns version - 1 into `version`; or the unfinished one goes on. REQUIRES: form is not kNothing.
  void Begin(PullForm form, Version version);
  // Block `index` of a full or live transfer, coded as fp32, as of `version`.
  // DATA_LOSS, INVALID_ARGUMENT: as BlockDecoder::Decode, or no version; the block is as it was.
  absl::Status Put(std::uint64_t index, Version version, std::span<const std::byte> block, BlockDecoder* decoder);
  // Block `index` of the broadcast. Where the block is newer than what it is made for nothing is done. Errors as Put;
  // FAILED_PRECONDITION: the block is older.
  absl::Status Add(std::uint64_t index, std::span<const std::byte> block, Codec codec, BlockDecoder* decoder);
  // No more blocks come of the transfer for now. When it is finished, and all blocks are of one version, takes the
  // digest.
  void End();
  // The server does not have the rest of the unfinished transfer: what is there is mixed, or, where it was to replace
  // all blocks, nothing.
  void Abandon();

 private:
  static constexpr Version kNone = ~Version{0};  // of a block that is not there

  BaseBuffer(FlatBuffer values, std::uint64_t blocks) : values_(std::move(values)), versions_(blocks, kNone) {}
  std::span<float> BlockAt(std::uint64_t index);
  bool IsMissing(std::uint64_t index) const;

  FlatBuffer values_;
  std::vector<Version> versions_;       // by block
  PullForm form_ = PullForm::kNothing;  // of the transfer that has begun; kNothing: none, or it is finished
  Version version_ = 0;
  Held held_;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_RUNTIME_BASE_BUFFER_H_
