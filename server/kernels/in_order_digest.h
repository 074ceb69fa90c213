// The digest of a vector whose blocks get their final values in any order, on many threads: each block is digested when
// it and all before it are there, most often while it is still in a cache.
#ifndef AUTOLOCO_SERVER_KERNELS_IN_ORDER_DIGEST_H_
#define AUTOLOCO_SERVER_KERNELS_IN_ORDER_DIGEST_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/base/mutex.h"

namespace autoloco::server {

// Thread-safe.
class InOrderDigest {
 public:
  // Borrows the values for its life.
  explicit InOrderDigest(std::span<const float> values);

  // Block `block` (of kBlockValues values) will not change any more: it is digested now, with all that follow it and are
  // there, unless one before it is missing or another thread is at it, which then sees to it. Called once a block.
  void OnBlock(std::size_t block);

  // Digest128 of all values. REQUIRES: OnBlock has returned for every block.
  std::string Finish() const;

 private:
  // Claims the next block in order; false: it is not there yet, and nobody digests any more.
  bool Next(std::size_t* block);

  const std::span<const float> values_;
  Digest128Stream stream_;  // of the thread that digests
  Mutex mutex_;
  std::vector<bool> there_ ABSL_GUARDED_BY(mutex_);
  std::size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  bool digesting_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_KERNELS_IN_ORDER_DIGEST_H_
