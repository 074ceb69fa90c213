#include "server/kernels/in_order_digest.h"

#include "common/codec/codec.h"

namespace autoloco::server {

InOrderDigest::InOrderDigest(std::span<const float> values) : values_(values), there_(BlockCount(values.size())) {}

void InOrderDigest::OnBlock(std::size_t block) {
  {
    MutexLock lock(&mutex_);
    there_[block] = true;
    if (digesting_) return;
    digesting_ = true;
  }
  while (Next(&block)) {
    stream_.Update(std::as_bytes(values_.subspan(block * kBlockValues, BlockSize(values_.size(), block))));
  }
}

bool InOrderDigest::Next(std::size_t* block) {
  MutexLock lock(&mutex_);
  if (next_ == there_.size() || !there_[next_]) {
    digesting_ = false;
    return false;
  }
  *block = next_++;
  return true;
}

std::string InOrderDigest::Finish() const { return stream_.Finish(); }

}  // namespace autoloco::server
