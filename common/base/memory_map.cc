#include "common/base/memory_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"

namespace autoloco {

absl::StatusOr<MemoryMap> MemoryMap::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return FileError("open", path, errno);
  struct stat info = {};
  if (fstat(descriptor, &info) != 0) {
    const int error = errno;
    close(descriptor);
    return FileError("stat", path, error);
  }
  if (!S_ISREG(info.st_mode) || info.st_size == 0) {
    close(descriptor);
    if (S_ISREG(info.st_mode)) return MemoryMap();
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  void* const data = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  const int error = errno;
  close(descriptor);  // the mapping keeps the file
  if (data == MAP_FAILED) return FileError("map", path, error);
  return MemoryMap(static_cast<const std::byte*>(data), size);
}

MemoryMap::~MemoryMap() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

MemoryMap::MemoryMap(MemoryMap&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MemoryMap& MemoryMap::operator=(MemoryMap&& other) noexcept {
  if (this == &other) return *this;
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

}  // namespace autoloco
