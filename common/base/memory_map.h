// A file as read-only memory: token files, safetensors, payloads in the spool.
#ifndef AUTOLOCO_COMMON_BASE_MEMORY_MAP_H_
#define AUTOLOCO_COMMON_BASE_MEMORY_MAP_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace autoloco {

// Maps a regular file for as long as it lives. Movable; the bytes stay where they are when it moves. Immutable after
// construction; thread-safe. The file must not be cut while it is mapped (the process would get SIGBUS): map only files
// that are replaced by rename.
class MemoryMap {
 public:
  MemoryMap() = default;
  // Errors as FileError; FAILED_PRECONDITION when `path` is not a regular file. An empty file gives no bytes.
  static absl::StatusOr<MemoryMap> Open(const std::string& path);
  ~MemoryMap();
  MemoryMap(MemoryMap&& other) noexcept;
  MemoryMap& operator=(MemoryMap&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  absl::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  MemoryMap(const std::byte* data, std::size_t size) : data_(data), size_(size) {}

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_BASE_MEMORY_MAP_H_
