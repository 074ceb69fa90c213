// The view (the parameters as every worker holds them) while commits change it: whoever reads it gets whole blocks,
// each of one version that it names. No copy of the view is made for a reader.
#ifndef AUTOLOCO_SERVER_RUNTIME_LIVE_VIEW_H_
#define AUTOLOCO_SERVER_RUNTIME_LIVE_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/flat_buffer.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "server/kernels/commit.h"

namespace autoloco::server {

class LiveView final : public ViewGuard {
 public:
  // Zeros, as of version 0. RESOURCE_EXHAUSTED when the memory cannot be had.
  static absl::StatusOr<std::shared_ptr<LiveView>> Allocate(std::uint64_t value_count);

  // The values without a lock: for the thread that runs the commits, which changes them through Change alone once
  // there are readers.
  std::span<float> values() { return values_.values(); }
  std::uint64_t value_count() const { return values_.size(); }
  std::size_t block_count() const { return blocks_.size(); }

  // All blocks are of `version`. REQUIRES: no reader yet.
  void SetVersion(Version version);

  // Any thread: `change` under the block's lock; the block is of the next version then.
  void Change(std::size_t block, absl::FunctionRef<void()> change) override;

  // Any thread: copies block `block` into `out` and returns its version. REQUIRES: out.size() == BlockSize of it.
  Version Read(std::size_t block, std::span<float> out) const;

 private:
  struct Block {
    mutable Mutex mutex;  // also guards the block's values against readers
    Version version ABSL_GUARDED_BY(mutex) = 0;
  };

  explicit LiveView(FlatBuffer values);

  FlatBuffer values_;
  std::vector<Block> blocks_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_LIVE_VIEW_H_
