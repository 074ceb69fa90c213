// The bytes of one push while they come in and until they are used.
#ifndef AUTOLOCO_SERVER_RUNTIME_PAYLOAD_H_
#define AUTOLOCO_SERVER_RUNTIME_PAYLOAD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/byte_ranges.h"
#include "common/base/mutex.h"

namespace autoloco::server {

// Where the bytes lie: plain memory, or a file that storage keeps. Its size never changes.
class PayloadMemory {
 public:
  virtual ~PayloadMemory() = default;
  virtual std::span<const std::byte> bytes() const = 0;
  // Puts `bytes` at `offset`; threads may write different places at once. An error (a bad disk) is for the pusher: what
  // is there is undefined then, until it is written again. REQUIRES: it lies inside.
  virtual absl::Status Write(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  // All bytes are written: may begin to bring them to where they are kept, so that less is left to do once they are
  // accepted. Returns at once. Called at most once, before anybody reads.
  virtual void Arrived() {}
};

// Plain memory; pages are touched only as bytes come. RESOURCE_EXHAUSTED when it cannot be had.
absl::StatusOr<std::unique_ptr<PayloadMemory>> AllocatePayloadMemory(std::uint64_t size_bytes);

// Thread-safe: the streams of a push fill it side by side. A byte is written once, by whoever brings it first; what
// comes again is passed over.
class Payload {
 public:
  // In plain memory.
  static absl::StatusOr<std::shared_ptr<Payload>> Allocate(std::uint64_t size_bytes);
  // Fills `memory`.
  explicit Payload(std::unique_ptr<PayloadMemory> memory);
  // One that is whole already.
  static std::shared_ptr<Payload> Whole(std::unique_ptr<PayloadMemory> memory);

  // Puts `pieces`, one after the other, where they belong. Errors as PayloadMemory::Write; what could not be written is
  // missing still. REQUIRES: all of it lies inside.
  absl::Status Put(std::uint64_t offset, std::span<const absl::string_view> pieces);
  absl::Status Put(std::uint64_t offset, absl::string_view bytes) { return Put(offset, std::span(&bytes, 1)); }

  // What nobody has brought yet, in order; at most `most` ranges (ByteRanges::Missing).
  std::vector<ByteRange> Missing(std::size_t most) const;

  std::uint64_t size() const { return memory_->bytes().size(); }
  // Bytes that are in their places. Whoever finds the payload whole sees all of them.
  std::uint64_t received() const { return received_.load(std::memory_order_acquire); }
  bool whole() const { return received() == size(); }
  // REQUIRES: whole.
  std::span<const std::byte> bytes() const { return memory_->bytes(); }
  PayloadMemory* memory() { return memory_.get(); }

 private:
  const std::unique_ptr<PayloadMemory> memory_;
  std::atomic<std::uint64_t> received_{0};
  mutable Mutex mutex_;
  ByteRanges claimed_ ABSL_GUARDED_BY(mutex_);  // written, or being written by the thread that claimed them
};

// What one stream brings of a payload: a range of it, chunk by chunk.
class PayloadPart {
 public:
  // REQUIRES: the range lies inside the payload.
  PayloadPart(std::shared_ptr<Payload> payload, ByteRange range, std::size_t chunk_bytes_max);

  // The chunk that starts `offset` bytes into the range. One thread at a time.
  // RESOURCE_EXHAUSTED: larger than a chunk may be. OUT_OF_RANGE: not where the last one ended, or beyond the range.
  // INVALID_ARGUMENT: empty. The payload is as before then. Errors as Payload::Put.
  absl::Status Take(std::uint64_t offset, std::span<const absl::string_view> pieces);

  // OK when the whole range came; DATA_LOSS saying how much did.
  absl::Status CheckWhole() const;

  // Bytes that came on this stream; any thread.
  std::uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }

 private:
  const std::shared_ptr<Payload> payload_;
  const ByteRange range_;
  const std::size_t chunk_bytes_max_;
  std::atomic<std::uint64_t> taken_{0};
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_PAYLOAD_H_
