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

// One thread at a time takes chunks; received() may be asked from any thread; bytes() is read after the last chunk.
class Payload {
 public:
  // Memory for exactly `size_bytes`; pages are touched only as bytes come. RESOURCE_EXHAUSTED when it cannot be had.
  static absl::StatusOr<std::shared_ptr<Payload>> Allocate(std::uint64_t size_bytes, std::size_t chunk_bytes_max);

  // Appends the chunk that starts at `offset`.
  // RESOURCE_EXHAUSTED: larger than a chunk may be. OUT_OF_RANGE: not where the last one ended, or beyond the size.
  // INVALID_ARGUMENT: empty. What was there before stays.
  absl::Status Take(std::uint64_t offset, absl::string_view data);

  // OK when all bytes are there; DATA_LOSS saying how many are.
  absl::Status CheckWhole() const;

  std::uint64_t size() const { return size_; }
  std::uint64_t received() const { return received_.load(std::memory_order_relaxed); }
  // REQUIRES: whole.
  std::span<const std::byte> bytes() const { return {bytes_.get(), static_cast<std::size_t>(size_)}; }

 private:
  Payload(std::unique_ptr<std::byte[]> bytes, std::uint64_t size_bytes, std::size_t chunk_bytes_max);

  const std::unique_ptr<std::byte[]> bytes_;
  const std::uint64_t size_;
  const std::size_t chunk_bytes_max_;
  std::atomic<std::uint64_t> received_{0};
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_PAYLOAD_H_
