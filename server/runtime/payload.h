// The bytes of one push while they come in and until they are used.
#ifndef AUTOLOCO_SERVER_RUNTIME_PAYLOAD_H_
#define AUTOLOCO_SERVER_RUNTIME_PAYLOAD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace autoloco::server {

// Where the bytes lie: plain memory, or a file that storage keeps. Its size never changes.
class PayloadMemory {
 public:
  virtual ~PayloadMemory() = default;
  // Written while the payload comes in, only read afterwards.
  virtual std::span<std::byte> bytes() = 0;
  // All bytes are written: may begin to bring them to where they are kept, so that less is left to do once they are
  // accepted. Returns at once. Called at most once, before anybody reads.
  virtual void Arrived() {}
};

// Plain memory; pages are touched only as bytes come. RESOURCE_EXHAUSTED when it cannot be had.
absl::StatusOr<std::unique_ptr<PayloadMemory>> AllocatePayloadMemory(std::uint64_t size_bytes);

// One thread at a time takes chunks; received() may be asked from any thread; bytes() is read after the last chunk.
class Payload {
 public:
  // In plain memory.
  static absl::StatusOr<std::shared_ptr<Payload>> Allocate(std::uint64_t size_bytes, std::size_t chunk_bytes_max);
  // Fills `memory`.
  Payload(std::unique_ptr<PayloadMemory> memory, std::size_t chunk_bytes_max);
  // One that is whole already.
  static std::shared_ptr<Payload> Whole(std::unique_ptr<PayloadMemory> memory);

  // Appends the chunk that starts at `offset`.
  // RESOURCE_EXHAUSTED: larger than a chunk may be. OUT_OF_RANGE: not where the last one ended, or beyond the size.
  // INVALID_ARGUMENT: empty. What was there before stays.
  absl::Status Take(std::uint64_t offset, absl::string_view data);

  // OK when all bytes are there; DATA_LOSS saying how many are.
  absl::Status CheckWhole() const;

  std::uint64_t size() const { return bytes_.size(); }
  std::uint64_t received() const { return received_.load(std::memory_order_relaxed); }
  // REQUIRES: whole.
  std::span<const std::byte> bytes() const { return bytes_; }
  PayloadMemory* memory() { return memory_.get(); }

 private:
  const std::unique_ptr<PayloadMemory> memory_;
  const std::span<std::byte> bytes_;
  const std::size_t chunk_bytes_max_;
  std::atomic<std::uint64_t> received_{0};
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_PAYLOAD_H_
