#include "server/runtime/encoded_payload.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace autoloco::server {

EncodedPayload::EncodedPayload(Header header, std::vector<std::string> blocks)
    : header_(std::move(header)), blocks_(std::move(blocks)) {
  offsets_.reserve(blocks_.size() + 1);
  std::uint64_t offset = 0;
  for (const std::string& block : blocks_) {
    offsets_.push_back(offset);
    offset += block.size();
  }
  offsets_.push_back(offset);
}

std::vector<absl::string_view> EncodedPayload::Pieces(std::uint64_t offset, std::uint64_t size) const {
  AUTOLOCO_CHECK(offset <= payload_bytes());
  AUTOLOCO_CHECK(size <= payload_bytes() - offset);
  std::vector<absl::string_view> pieces;
  // The last block that starts at or before `offset`.
  std::size_t index = std::upper_bound(offsets_.begin(), offsets_.end(), offset) - offsets_.begin() - 1;
  for (; size > 0; ++index) {
    const absl::string_view piece = absl::string_view(blocks_[index]).substr(offset - offsets_[index], size);
    if (!piece.empty()) pieces.push_back(piece);
    offset += piece.size();
    size -= piece.size();
  }
  return pieces;
}

}  // namespace autoloco::server
