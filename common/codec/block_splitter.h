// Cuts a payload that comes in pieces into its blocks.
#ifndef AUTOLOCO_COMMON_CODEC_BLOCK_SPLITTER_H_
#define AUTOLOCO_COMMON_CODEC_BLOCK_SPLITTER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/codec/codec.h"

namespace autoloco {

// Takes hostile bytes: holds one block at the most, and takes memory for one only as its bytes come. Not thread-safe.
class BlockSplitter {
 public:
  struct Block {
    std::uint64_t index = 0;
    std::span<const std::byte> bytes;  // header and body; valid until the next call and while what was given is
  };

  // For the blocks first_block .. end_block - 1 of a vector of `value_count`. REQUIRES: a known codec; first_block <=
  // end_block <= BlockCount(value_count).
  BlockSplitter(std::uint64_t value_count, Codec codec, std::uint64_t first_block, std::uint64_t end_block);

  // Takes bytes off the front of `*piece` up to the end of a block. None: all of them were taken, and the block at hand
  // needs more. INVALID_ARGUMENT, naming the block: its header is not that of the block that must come, or nothing
  // must. No checksum is verified.
  absl::StatusOr<std::optional<Block>> Next(std::span<const std::byte>* piece);

  // Every block has come, and nothing of another one.
  bool done() const { return next_ == end_ && held_.empty(); }

 private:
  // Moves bytes from `*piece` until `size` are held. False: it ended before.
  bool Hold(std::size_t size, std::span<const std::byte>* piece);
  // Of the block that must come, header and body, as its header says.
  absl::StatusOr<std::size_t> BlockBytes(std::span<const std::byte> header) const;

  const std::uint64_t value_count_;
  const Codec codec_;
  std::uint64_t next_;
  const std::uint64_t end_;
  std::vector<std::byte> held_;  // the front of a block whose end has not come
  bool given_ = false;           // held_ is the block given last
};

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CODEC_BLOCK_SPLITTER_H_
