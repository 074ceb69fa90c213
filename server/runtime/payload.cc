#include "server/runtime/payload.h"

#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace autoloco::server {

namespace {

class PlainMemory final : public PayloadMemory {
 public:
  PlainMemory(std::unique_ptr<std::byte[]> bytes, std::size_t size) : bytes_(std::move(bytes)), size_(size) {}
  std::span<std::byte> bytes() override { return {bytes_.get(), size_}; }

 private:
  const std::unique_ptr<std::byte[]> bytes_;
  const std::size_t size_;
};

}  // namespace

Payload::Payload(std::unique_ptr<PayloadMemory> memory, std::size_t chunk_bytes_max)
    : memory_(std::move(memory)), bytes_(memory_->bytes()), chunk_bytes_max_(chunk_bytes_max) {}

std::shared_ptr<Payload> Payload::Whole(std::unique_ptr<PayloadMemory> memory) {
  auto payload = std::make_shared<Payload>(std::move(memory), 0);
  payload->received_.store(payload->size(), std::memory_order_relaxed);
  return payload;
}

absl::StatusOr<std::unique_ptr<PayloadMemory>> AllocatePayloadMemory(std::uint64_t size_bytes) {
  std::unique_ptr<std::byte[]> bytes(new (std::nothrow) std::byte[size_bytes]);
  if (bytes == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a push of ", size_bytes, " bytes; come back later"));
  }
  return std::make_unique<PlainMemory>(std::move(bytes), size_bytes);
}

absl::StatusOr<std::shared_ptr<Payload>> Payload::Allocate(std::uint64_t size_bytes, std::size_t chunk_bytes_max) {
  AUTOLOCO_ASSIGN_OR_RETURN(std::unique_ptr<PayloadMemory> memory, AllocatePayloadMemory(size_bytes));
  return std::make_shared<Payload>(std::move(memory), chunk_bytes_max);
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
  if (data.size() > size() - received) {
    return absl::OutOfRangeError(
        absl::StrCat("push: want ", size(), " bytes in all, got at least ", received + data.size()));
  }
  std::memcpy(bytes_.data() + received, data.data(), data.size());
  received_.store(received + data.size(), std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status Payload::CheckWhole() const {
  if (received() == size()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("push: want ", size(), " bytes, the stream ended after ", received()));
}

}  // namespace autoloco::server
