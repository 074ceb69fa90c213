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

void EncodedPayload::Copy(std::uint64_t offset, std::uint64_t size, std::string* out) const {
  AUTOLOCO_CHECK(offset <= payload_bytes());
  AUTOLOCO_CHECK(size <= payload_bytes() - offset);
  out->clear();
  out->reserve(size);
  // The last block that starts at or before `offset`.
  std::size_t index = std::upper_bound(offsets_.begin(), offsets_.end(), offset) - offsets_.begin() - 1;
  while (out->size() < size) {
    const std::uint64_t skip = offset + out->size() - offsets_[index];
    const std::uint64_t count = std::min<std::uint64_t>(blocks_[index].size() - skip, size - out->size());
    out->append(blocks_[index], skip, count);
    ++index;
  }
}

}  // namespace autoloco::server
