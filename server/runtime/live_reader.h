// Reads a live view block by block as it is sent: one block copied under its lock, coded losslessly outside of it.
#ifndef AUTOLOCO_SERVER_RUNTIME_LIVE_READER_H_
#define AUTOLOCO_SERVER_RUNTIME_LIVE_READER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/codec/delta_codec.h"
#include "server/runtime/live_view.h"

namespace autoloco::server {

// One thread at a time, and not the event loop's: a block takes a millisecond or two.
class LiveReader {
 public:
  LiveReader(std::shared_ptr<const LiveView> view, int zstd_level)
      : view_(std::move(view)), encoder_(Codec::kFp32, zstd_level) {}

  // Sets `data` to block `block`, coded as fp32, and returns the version it was read at.
  Version Read(std::size_t block, std::string* data) {
    values_.resize(BlockSize(view_->value_count(), block));
    const Version version = view_->Read(block, values_);
    data->clear();
    encoder_.Append(static_cast<std::uint32_t>(block), values_, data);
    return version;
  }

 private:
  const std::shared_ptr<const LiveView> view_;
  BlockEncoder encoder_;
  std::vector<float> values_;  // one block
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_LIVE_READER_H_
