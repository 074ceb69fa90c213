// The vectors of one version, read block by block for a checkpoint while the next commit may already be changing them.
// Before a commit touches a block that has not been read it leaves a copy of it here; what was read needs none. Both
// walk through the blocks from the first to the last, so few copies are there at a time, and no more than are allowed:
// a commit that is further ahead waits.
#ifndef AUTOLOCO_SERVER_RUNTIME_CHECKPOINT_READER_H_
#define AUTOLOCO_SERVER_RUNTIME_CHECKPOINT_READER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "server/kernels/commit.h"

namespace autoloco::server {

// Thread-safe: one thread reads, any others change.
class CheckpointReader final : public BlockGuard {
 public:
  // The vectors of a version, or one block of each; `view` is empty where the parameters are the view.
  struct Vectors {
    std::span<const float> params;
    std::span<const float> momentum;
    std::span<const float> view;
  };
  static constexpr std::uint64_t kCopiedBytesMax = 64 << 20;

  // Borrows the vectors, and the clock unless it is null, for its life. `copied_bytes_max`: of all copies at a time;
  // one block's is always allowed.
  explicit CheckpointReader(const Vectors& vectors, const Clock* clock = nullptr,
                            std::uint64_t copied_bytes_max = kCopiedBytesMax);
  // REQUIRES: nobody waits in BeforeChange.
  ~CheckpointReader() override = default;
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;

  std::uint64_t value_count() const { return vectors_.params.size(); }
  bool has_view() const { return !vectors_.view.empty(); }
  std::size_t block_count() const { return block_count_; }

  // The next block, from block 0 on: valid until the next call. REQUIRES: fewer than block_count() calls before.
  Vectors Next();
  // Nothing more will be read: commits go on as if there were no reader. Idempotent.
  void Close();

  // Returns when the block may be changed. Once a block: after one commit the vectors have nothing more to be read.
  void BeforeChange(std::size_t block) override;
  // For how long so far a commit has waited here, on any of its threads; 0 without a clock.
  absl::Duration held_up() const;

 private:
  void WaitForRoom(std::size_t block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CopyBlock(std::size_t block, std::vector<float>* copy) const;

  const Vectors vectors_;
  const std::size_t block_count_;
  const Clock* const clock_;
  const std::size_t copies_max_;
  std::vector<float> current_;        // of the reading thread: the block that was read last, its vectors in a row
  std::atomic<std::size_t> next_{0};  // blocks before it have been read
  mutable Mutex mutex_;               // also keeps the block that is being read from being changed
  CondVar advanced_;
  std::map<std::size_t, std::vector<float>> copies_ ABSL_GUARDED_BY(mutex_);
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // threads
  Instant waiting_since_ ABSL_GUARDED_BY(mutex_);
  absl::Duration held_up_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_CHECKPOINT_READER_H_
