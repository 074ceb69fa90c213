#include "server/runtime/payload.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace autoloco::server {

namespace {

class PlainMemory final : public PayloadMemory {
 public:
  PlainMemory(std::unique_ptr<std::byte[]> bytes, std::size_t size) : bytes_(std::move(bytes)), size_(size) {}
  std::span<const std::byte> bytes() const override { return {bytes_.get(), size_}; }
  absl::Status Write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    std::memcpy(bytes_.get() + offset, bytes.data(), bytes.size());
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<std::byte[]> bytes_;
  const std::size_t size_;
};

std::uint64_t SizeOf(std::span<const absl::string_view> pieces) {
  std::uint64_t size = 0;
  for (const absl::string_view piece : pieces) size += piece.size();
  return size;
}

// Writes what of `pieces`, which begin at `offset`, lies in `range`.
absl::Status Write(std::uint64_t offset, std::span<const absl::string_view> pieces, const ByteRange& range,
                   PayloadMemory* memory) {
  for (const absl::string_view piece : pieces) {
    const std::uint64_t first = std::max(offset, range.first);
    const std::uint64_t end = std::min(offset + piece.size(), range.end());
    if (first < end) {
      const std::span<const char> part(piece.data() + (first - offset), end - first);
      AUTOLOCO_RETURN_IF_ERROR(memory->Write(first, std::as_bytes(part)));
    }
    offset += piece.size();
  }
  return absl::OkStatus();
}

}  // namespace

Payload::Payload(std::unique_ptr<PayloadMemory> memory) : memory_(std::move(memory)) {}

std::shared_ptr<Payload> Payload::Whole(std::unique_ptr<PayloadMemory> memory) {
  auto payload = std::make_shared<Payload>(std::move(memory));
  MutexLock lock(&payload->mutex_);
  payload->claimed_.Add({0, payload->size()});
  payload->received_.store(payload->size(), std::memory_order_release);
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

absl::StatusOr<std::shared_ptr<Payload>> Payload::Allocate(std::uint64_t size_bytes) {
  AUTOLOCO_ASSIGN_OR_RETURN(std::unique_ptr<PayloadMemory> memory, AllocatePayloadMemory(size_bytes));
  return std::make_shared<Payload>(std::move(memory));
}

absl::Status Payload::Put(std::uint64_t offset, std::span<const absl::string_view> pieces) {
  const std::uint64_t count = SizeOf(pieces);
  AUTOLOCO_CHECK(offset <= size());
  AUTOLOCO_CHECK(count <= size() - offset);
  std::vector<ByteRange> mine;
  {
    MutexLock lock(&mutex_);
    mine = claimed_.Add({offset, count});
  }
  for (const ByteRange& range : mine) {
    const absl::Status written = Write(offset, pieces, range, memory_.get());
    if (written.ok()) continue;
    MutexLock lock(&mutex_);
    for (const ByteRange& claimed : mine) claimed_.Remove(claimed);
    return written;
  }
  received_.fetch_add(TotalBytes(mine), std::memory_order_acq_rel);
  return absl::OkStatus();
}

std::vector<ByteRange> Payload::Missing(std::size_t most) const {
  MutexLock lock(&mutex_);
  return claimed_.Missing(size(), most);
}

PayloadPart::PayloadPart(std::shared_ptr<Payload> payload, ByteRange range, std::size_t chunk_bytes_max)
    : payload_(std::move(payload)), range_(range), chunk_bytes_max_(chunk_bytes_max) {}

absl::Status PayloadPart::Take(std::uint64_t offset, std::span<const absl::string_view> pieces) {
  const std::uint64_t taken = this->taken();
  const std::uint64_t count = SizeOf(pieces);
  if (count > chunk_bytes_max_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("chunk at offset ", offset, ": want at most ", chunk_bytes_max_, " bytes, got ", count));
  }
  if (count == 0) return absl::InvalidArgumentError(absl::StrCat("chunk at offset ", offset, " is empty"));
  if (offset != taken) {
    return absl::OutOfRangeError(absl::StrCat("chunk of the push: want offset ", taken, ", got ", offset));
  }
  if (count > range_.count - taken) {
    return absl::OutOfRangeError(
        absl::StrCat("push: want ", range_.count, " bytes in all, got at least ", taken + count));
  }
  AUTOLOCO_RETURN_IF_ERROR(payload_->Put(range_.first + taken, pieces));
  taken_.store(taken + count, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status PayloadPart::CheckWhole() const {
  if (taken() == range_.count) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("push: want ", range_.count, " bytes, the stream ended after ", taken()));
}

}  // namespace autoloco::server
