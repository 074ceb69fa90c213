#include "common/base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace autoloco {
namespace {

// Closes a descriptor at the end of a scope.
class ScopedDescriptor {
 public:
  explicit ScopedDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~ScopedDescriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  ScopedDescriptor(const ScopedDescriptor&) = delete;
  ScopedDescriptor& operator=(const ScopedDescriptor&) = delete;
  int get() const { return descriptor_; }
  int Release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

absl::Status WriteAll(int descriptor, const std::string& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError("write", path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteAllAt(int descriptor, const std::string& path, std::uint64_t offset,
                        std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError("write", path, errno);
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status FileError(absl::string_view action, absl::string_view path, int error_number) {
  const std::string message = absl::StrCat("cannot ", action, " ", path, ": ", std::strerror(error_number));
  switch (error_number) {
    case ENOENT:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::ResourceExhaustedError(message);
    case EISDIR:
    case ENOTDIR:
    case EEXIST:
      return absl::FailedPreconditionError(message);
    default:
      return absl::UnavailableError(message);
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path, std::uint64_t bytes_max) {
  const ScopedDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return FileError("open", path, errno);
  struct stat info = {};
  if (fstat(file.get(), &info) != 0) return FileError("stat", path, errno);
  if (S_ISDIR(info.st_mode)) return FileError("read", path, EISDIR);
  if (!S_ISREG(info.st_mode)) return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size > bytes_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, " is too long: want at most ", bytes_max, " bytes, got ", size));
  }
  std::string contents(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    const ssize_t got = read(file.get(), contents.data() + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError("read", path, errno);
    if (got == 0) break;  // it was cut meanwhile
    have += static_cast<std::size_t>(got);
  }
  contents.resize(have);
  return contents;
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes) {
  AUTOLOCO_ASSIGN_OR_RETURN(AtomicFileWriter writer, AtomicFileWriter::Create(path));
  AUTOLOCO_RETURN_IF_ERROR(writer.Append(std::as_bytes(std::span<const char>(bytes.data(), bytes.size()))));
  return writer.Commit();
}

absl::Status SyncFolder(const std::string& folder) {
  const ScopedDescriptor descriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.get() < 0) return FileError("open folder", folder, errno);
  if (fsync(descriptor.get()) != 0) return FileError("fsync folder", folder, errno);
  return absl::OkStatus();
}

absl::Status MakeFolders(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return FileError("make folder", folder, error.value());
  if (!std::filesystem::is_directory(folder, error)) return FileError("make folder", folder, ENOTDIR);
  return absl::OkStatus();
}

std::string FolderOf(absl::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

absl::StatusOr<AtomicFileWriter> AtomicFileWriter::Create(const std::string& path) {
  const std::string temporary = absl::StrCat(path, ".tmp");
  const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return FileError("create", temporary, errno);
  return AtomicFileWriter(path, descriptor);
}

AtomicFileWriter::AtomicFileWriter(std::string path, int descriptor)
    : path_(std::move(path)), temporary_(absl::StrCat(path_, ".tmp")), descriptor_(descriptor) {}

AtomicFileWriter::AtomicFileWriter(AtomicFileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

AtomicFileWriter::~AtomicFileWriter() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(temporary_.c_str());
}

absl::Status AtomicFileWriter::Append(std::span<const std::byte> bytes) {
  AUTOLOCO_CHECK(descriptor_ >= 0);
  return WriteAll(descriptor_, temporary_, bytes);
}

absl::Status AtomicFileWriter::WriteAt(std::uint64_t offset, std::span<const std::byte> bytes) {
  AUTOLOCO_CHECK(descriptor_ >= 0);
  return WriteAllAt(descriptor_, temporary_, offset, bytes);
}

absl::Status AtomicFileWriter::Commit() {
  AUTOLOCO_CHECK(descriptor_ >= 0);
  if (fsync(descriptor_) != 0) return FileError("fsync", temporary_, errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return FileError("rename to", path_, errno);
  close(std::exchange(descriptor_, -1));
  return SyncFolder(FolderOf(path_));
}

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/LOCK");
  ScopedDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (file.get() < 0) return FileError("open", path, errno);
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return FileError("lock", path, errno);
    char text[32] = {};
    const ssize_t got = pread(file.get(), text, sizeof(text) - 1, 0);
    int pid = 0;
    const bool named = got > 0 && absl::SimpleAtoi(absl::string_view(text, static_cast<std::size_t>(got)), &pid);
    return absl::FailedPreconditionError(absl::StrCat("state folder ", folder, " is already in use by ",
                                                      named ? absl::StrCat("pid ", pid) : "another process"));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(file.get(), 0) != 0) return FileError("truncate", path, errno);
  AUTOLOCO_RETURN_IF_ERROR(WriteAll(file.get(), path, std::as_bytes(std::span<const char>(pid))));
  return FileLock(file.Release());
}

FileLock::FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock::~FileLock() {
  if (descriptor_ >= 0) close(descriptor_);  // the file stays: removing it would let two processes lock two files
}

}  // namespace autoloco
