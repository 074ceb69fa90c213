#include "server/runtime/payload.h"

#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

namespace autoloco::server {

Payload::Payload(std::unique_ptr<std::byte[]> bytes, std::uint64_t size_bytes, std::size_t chunk_bytes_max)
    : bytes_(std::move(bytes)), size_(size_bytes), chunk_bytes_max_(chunk_bytes_max) {}

absl::StatusOr<std::shared_ptr<Payload>> Payload::Allocate(std::uint64_t size_bytes, std::size_t chunk_bytes_max) {
  std::unique_ptr<std::byte[]> bytes(new (std::nothrow) std::byte[size_bytes]);
  if (bytes == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a push of ", size_bytes, " bytes; come back later"));
  }
  return std::shared_ptr<Payload>(new Payload(std::move(bytes), size_bytes, chunk_bytes_max));
}

absl::Status Payload::Take(std::uint64_t offset, absl::string_view data) {
  const std::uint64_t received = this->received();
  if (data.size() > chunk_bytes_max_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("chunk at offset ", offset, ": want at most ", chunk_bytes_max_, " bytes, got ", data.size()));
  }
  if (data.empty()) return absl::InvalidArgumentError(absl::StrCat("chunk at offset ", offset, " is empty"));
  if (offset != received) {
    return absl::OutOfRangeError(absl::StrCat("chunk of the push: want offset ", received, ", got ", offset));
  }
  if (data.size() > size_ - received) {
    return absl::OutOfRangeError(
        absl::StrCat("push: want ", size_, " bytes in all, got at least ", received + data.size()));
  }
  std::memcpy(bytes_.get() + received, data.data(), data.size());
  received_.store(received + data.size(), std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status Payload::CheckWhole() const {
  if (received() == size_) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("push: want ", size_, " bytes, the stream ended after ", received()));
}

}  // namespace autoloco::server
