#include "common/codec/block_splitter.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/codec/block_format.h"

namespace autoloco {

BlockSplitter::BlockSplitter(std::uint64_t value_count, Codec codec, std::uint64_t first_block, std::uint64_t end_block)
    : value_count_(value_count), codec_(codec), next_(first_block), end_(end_block) {
  AUTOLOCO_CHECK(IsKnown(codec));
  AUTOLOCO_CHECK(first_block <= end_block);
  AUTOLOCO_CHECK(end_block <= BlockCount(value_count));
}

absl::StatusOr<std::size_t> BlockSplitter::BlockBytes(std::span<const std::byte> header) const {
  const BlockHeader read = ReadHeader(header.data());
  AUTOLOCO_RETURN_IF_ERROR(CheckHeader(read, codec_, next_, BlockSize(value_count_, next_)));
  return kBlockHeaderBytes + read.body_bytes;
}

bool BlockSplitter::Hold(std::size_t size, std::span<const std::byte>* piece) {
  if (held_.size() < size) {
    const std::size_t taken = std::min(size - held_.size(), piece->size());
    held_.insert(held_.end(), piece->begin(), piece->begin() + static_cast<std::ptrdiff_t>(taken));
    *piece = piece->subspan(taken);
  }
  return held_.size() >= size;
}

absl::StatusOr<std::optional<BlockSplitter::Block>> BlockSplitter::Next(std::span<const std::byte>* piece) {
  if (given_) held_.clear();
  given_ = false;
  if (piece->empty()) return std::nullopt;
  if (next_ == end_) return RefuseBlock(next_, "bytes behind the last block");
  if (held_.empty() && piece->size() >= kBlockHeaderBytes) {  // whole in this piece: no copy
    AUTOLOCO_ASSIGN_OR_RETURN(const std::size_t bytes, BlockBytes(*piece));
    if (piece->size() >= bytes) {
      const Block block{.index = next_++, .bytes = piece->first(bytes)};
      *piece = piece->subspan(bytes);
      return block;
    }
  }
  if (!Hold(kBlockHeaderBytes, piece)) return std::nullopt;
  AUTOLOCO_ASSIGN_OR_RETURN(const std::size_t bytes, BlockBytes(held_));
  if (!Hold(bytes, piece)) return std::nullopt;
  given_ = true;
  return Block{.index = next_++, .bytes = held_};
}

}  // namespace autoloco
