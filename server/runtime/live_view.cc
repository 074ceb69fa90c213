#include "server/runtime/live_view.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/codec/codec.h"

namespace autoloco::server {

LiveView::LiveView(FlatBuffer values) : values_(std::move(values)), blocks_(BlockCount(values_.size())) {}

absl::StatusOr<std::shared_ptr<LiveView>> LiveView::Allocate(std::uint64_t value_count) {
  AUTOLOCO_ASSIGN_OR_RETURN(FlatBuffer values, FlatBuffer::Allocate(value_count));
  return std::shared_ptr<LiveView>(new LiveView(std::move(values)));
}

void LiveView::SetVersion(Version version) {
  for (Block& block : blocks_) {
    MutexLock lock(&block.mutex);
    block.version = version;
  }
}

void LiveView::Change(std::size_t block, absl::FunctionRef<void()> change) {
  MutexLock lock(&blocks_[block].mutex);
  change();
  ++blocks_[block].version;
}

Version LiveView::Read(std::size_t block, std::span<float> out) const {
  AUTOLOCO_CHECK(block < blocks_.size());
  AUTOLOCO_CHECK(out.size() == BlockSize(values_.size(), block));
  const float* const first = values_.values().data() + block * kBlockValues;
  MutexLock lock(&blocks_[block].mutex);
  std::copy_n(first, out.size(), out.data());
  return blocks_[block].version;
}

}  // namespace autoloco::server
