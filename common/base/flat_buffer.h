// Memory for flat fp32 vectors: 2 MiB aligned, on huge pages where the kernel grants them, touched once at start.
#ifndef AUTOLOCO_COMMON_BASE_FLAT_BUFFER_H_
#define AUTOLOCO_COMMON_BASE_FLAT_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace autoloco {

// Owns `size()` floats, zero at first. Movable, not copyable; a moved-from buffer is empty. Not thread-safe by itself.
class FlatBuffer {
 public:
  FlatBuffer() = default;
  // RESOURCE_EXHAUSTED when the memory cannot be had.
  static absl::StatusOr<FlatBuffer> Allocate(std::uint64_t value_count);
  ~FlatBuffer();
  FlatBuffer(FlatBuffer&& other) noexcept;
  FlatBuffer& operator=(FlatBuffer&& other) noexcept;

  std::span<float> values() { return {data_, size_}; }
  std::span<const float> values() const { return {data_, size_}; }
  std::size_t size() const { return size_; }

 private:
  float* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_BASE_FLAT_BUFFER_H_
