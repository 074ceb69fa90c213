#include "server/runtime/checkpoint_reader.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/codec/codec.h"

namespace autoloco::server {
namespace {

std::uint64_t BlockBytes(const CheckpointReader::Vectors& vectors) {
  return (vectors.view.empty() ? 2 : 3) * kBlockValues * sizeof(float);
}

}  // namespace

CheckpointReader::CheckpointReader(const Vectors& vectors, const Clock* clock, std::uint64_t copied_bytes_max)
    : vectors_(vectors),
      block_count_(BlockCount(vectors.params.size())),
      clock_(clock),
      copies_max_(std::max<std::uint64_t>(1, copied_bytes_max / BlockBytes(vectors))) {
  AUTOLOCO_CHECK(vectors.momentum.size() == vectors.params.size());
  AUTOLOCO_CHECK(vectors.view.empty() || vectors.view.size() == vectors.params.size());
}

void CheckpointReader::CopyBlock(std::size_t block, std::vector<float>* copy) const {
  const std::size_t begin = block * kBlockValues;
  const std::size_t size = BlockSize(vectors_.params.size(), block);
  copy->clear();
  for (const std::span<const float> vector : {vectors_.params, vectors_.momentum, vectors_.view}) {
    if (vector.empty()) continue;
    const std::span<const float> values = vector.subspan(begin, size);
    copy->insert(copy->end(), values.begin(), values.end());
  }
}

CheckpointReader::Vectors CheckpointReader::Next() {
  const std::size_t block = next_.load(std::memory_order_relaxed);
  AUTOLOCO_CHECK(block < block_count_);
  {
    const MutexLock lock(&mutex_);
    const auto copy = copies_.find(block);
    if (copy == copies_.end()) {
      CopyBlock(block, &current_);
    } else {
      current_ = std::move(copy->second);
      copies_.erase(copy);
    }
    next_.store(block + 1, std::memory_order_release);
  }
  advanced_.NotifyAll();
  const std::span<const float> values(current_);
  const std::size_t size = BlockSize(vectors_.params.size(), block);
  return {values.subspan(0, size), values.subspan(size, size), values.subspan(2 * size)};
}

void CheckpointReader::Close() {
  {
    const MutexLock lock(&mutex_);
    next_.store(block_count_, std::memory_order_release);
    copies_.clear();
  }
  advanced_.NotifyAll();
}

void CheckpointReader::BeforeChange(std::size_t block) {
  const auto read = [this, block] { return block < next_.load(std::memory_order_acquire); };
  if (read()) return;
  const MutexLock lock(&mutex_);
  if (copies_.size() >= copies_max_) WaitForRoom(block);
  if (!read()) CopyBlock(block, &copies_[block]);
}

void CheckpointReader::WaitForRoom(std::size_t block) {
  if (waiting_++ == 0 && clock_ != nullptr) waiting_since_ = clock_->Now();
  while (block >= next_.load(std::memory_order_acquire) && copies_.size() >= copies_max_) advanced_.Wait(&mutex_);
  if (--waiting_ == 0 && clock_ != nullptr) held_up_ += clock_->Now() - waiting_since_;
}

absl::Duration CheckpointReader::held_up() const {
  const MutexLock lock(&mutex_);
  return held_up_;
}

}  // namespace autoloco::server
