// Reads a live view block by block as it is sent: one block copied under its lock, coded losslessly outside of it. One
// reader serves all pulls: what coding a block takes, a megabyte or two, is there as often as blocks are read at the
// same moment, and not for every pull.
#ifndef AUTOLOCO_SERVER_RUNTIME_LIVE_READER_H_
#define AUTOLOCO_SERVER_RUNTIME_LIVE_READER_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/codec/delta_codec.h"
#include "server/runtime/live_view.h"

namespace autoloco::server {

// Thread-safe; not for the event loop's thread: a block takes a millisecond or two.
class LiveReader {
 public:
  LiveReader(std::shared_ptr<const LiveView> view, int zstd_level) : view_(std::move(view)), zstd_level_(zstd_level) {}

  // Sets `data` to block `block`, coded as fp32, and returns the version it was read at.
  Version Read(std::size_t block, std::string* data) {
    std::unique_ptr<Scratch> scratch = TakeScratch();
    const std::span<float> values(scratch->values.data(), BlockSize(view_->value_count(), block));
    const Version version = view_->Read(block, values);
    data->clear();
    scratch->encoder.Append(static_cast<std::uint32_t>(block), values, data);
    const MutexLock lock(&mutex_);
    idle_.push_back(std::move(scratch));
    return version;
  }

 private:
  struct Scratch {
    explicit Scratch(int zstd_level) : encoder(Codec::kFp32, zstd_level), values(kBlockValues) {}
    BlockEncoder encoder;
    std::vector<float> values;  // one block
  };

  std::unique_ptr<Scratch> TakeScratch() {
    {
      const MutexLock lock(&mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Scratch> scratch = std::move(idle_.back());
        idle_.pop_back();
        return scratch;
      }
    }
    return std::make_unique<Scratch>(zstd_level_);
  }

  const std::shared_ptr<const LiveView> view_;
  const int zstd_level_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_LIVE_READER_H_
