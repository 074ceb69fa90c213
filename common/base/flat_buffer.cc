#include "common/base/flat_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace autoloco {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

}  // namespace

absl::StatusOr<FlatBuffer> FlatBuffer::Allocate(std::uint64_t value_count) {
  FlatBuffer buffer;
  if (value_count == 0) return buffer;
  constexpr std::uint64_t kValuesMax = (std::numeric_limits<std::size_t>::max() - 2 * kHugePageBytes) / sizeof(float);
  if (value_count > kValuesMax) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for ", value_count, " fp32 values"));
  }
  const std::size_t bytes = value_count * sizeof(float);
  const std::size_t rounded = (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  // One huge page more than needed, so that an aligned stretch lies inside; what surrounds it goes back at once.
  void* const raw = mmap(nullptr, rounded + kHugePageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", value_count, " fp32 values (", bytes, " bytes): ", std::strerror(errno)));
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(raw);
  const std::uintptr_t aligned = (begin + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  const std::size_t head = aligned - begin;
  if (head > 0) munmap(raw, head);
  if (head < kHugePageBytes) munmap(reinterpret_cast<void*>(aligned + rounded), kHugePageBytes - head);
  madvise(reinterpret_cast<void*>(aligned), rounded, MADV_HUGEPAGE);  // advice: refusal costs speed only
  buffer.data_ = reinterpret_cast<float*>(aligned);
  buffer.size_ = value_count;
  buffer.mapped_bytes_ = rounded;
  std::memset(buffer.data_, 0, bytes);  // the first touch: page faults happen here, not in the first round
  return buffer;
}

FlatBuffer::~FlatBuffer() {
  if (data_ != nullptr) munmap(data_, mapped_bytes_);
}

FlatBuffer::FlatBuffer(FlatBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}

FlatBuffer& FlatBuffer::operator=(FlatBuffer&& other) noexcept {
  if (this == &other) return *this;
  if (data_ != nullptr) munmap(data_, mapped_bytes_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  mapped_bytes_ = std::exchange(other.mapped_bytes_, 0);
  return *this;
}

}  // namespace autoloco
