// Takes what one stream of a pull brings into the base buffer.
#ifndef AUTOLOCO_WORKER_CLIENT_PULL_SINK_H_
#define AUTOLOCO_WORKER_CLIENT_PULL_SINK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/codec/block_splitter.h"
#include "common/codec/delta_codec.h"
#include "common/rpc/bulk_wire.h"
#include "worker/client/pull_header.h"
#include "worker/runtime/base_buffer.h"

namespace autoloco::worker {

// Not thread-safe; the sinks of a pull write other blocks each.
class PullSink {
 public:
  // `base` is borrowed; its transfer has begun.
  PullSink(const PullPlan& plan, BaseBuffer* base);

  // The next message after the header. DATA_LOSS: it is not the one that must come, or a block is damaged.
  absl::Status Take(const BulkFields& message);
  // DATA_LOSS: blocks are missing.
  absl::Status CheckWhole() const;

 private:
  absl::Status TakeChunk(const BulkFields& chunk);
  absl::Status TakeBlocks(absl::string_view piece);
  absl::Status TakeLive(const BulkFields& block);

  const PullPlan plan_;
  BaseBuffer* const base_;
  BlockSplitter splitter_;
  BlockDecoder decoder_;
  std::uint64_t next_live_;
  std::uint64_t taken_ = 0;  // payload bytes
  std::string joined_;       // a live block that came in pieces
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CLIENT_PULL_SINK_H_
