// Files as this project needs them: bounded reads, writes that are whole or absent after a crash, and a lock that keeps
// two masters out of one state folder. Every error names the path and says what the system said.
#ifndef AUTOLOCO_COMMON_BASE_FILE_H_
#define AUTOLOCO_COMMON_BASE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace autoloco {

// NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED (no space, no descriptors), FAILED_PRECONDITION (a folder where a
// file should be or the reverse) or UNAVAILABLE from an errno: "cannot open /x/y: No such file or directory".
absl::Status FileError(absl::string_view action, absl::string_view path, int error_number);

// Writes all of `bytes` at `offset` of the open file `descriptor`, which messages call `path`. Errors as FileError.
absl::Status WriteAllAt(int descriptor, const std::string& path, std::uint64_t offset,
                        std::span<const std::byte> bytes);

// The whole of a regular file. RESOURCE_EXHAUSTED when it is longer than `bytes_max`; errors as FileError.
absl::StatusOr<std::string> ReadFile(const std::string& path, std::uint64_t bytes_max);

// Replaces `path` with `bytes`: after a crash at any moment the file is the old one or the new one, whole. When OK is
// returned the new one is durable. One writer a path at a time (the temporary file is path + ".tmp").
absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes);

// Makes names created, renamed or removed in `folder` durable.
absl::Status SyncFolder(const std::string& folder);

// Creates `folder` and its parents where they are missing.
absl::Status MakeFolders(const std::string& folder);

// The folder that holds `path`: "." for a bare name.
std::string FolderOf(absl::string_view path);

// WriteFileAtomically for contents that come in pieces. Movable. Not thread-safe.
class AtomicFileWriter {
 public:
  // Starts path + ".tmp"; a leftover of that name is overwritten.
  static absl::StatusOr<AtomicFileWriter> Create(const std::string& path);
  // Without Commit the temporary file is removed and `path` stays as it was.
  ~AtomicFileWriter();
  AtomicFileWriter(AtomicFileWriter&& other) noexcept;
  AtomicFileWriter& operator=(AtomicFileWriter&&) = delete;

  absl::Status Append(std::span<const std::byte> bytes);
  // Writes `bytes` at `offset`, wherever Append is. What is left out below the end reads as zeros.
  absl::Status WriteAt(std::uint64_t offset, std::span<const std::byte> bytes);
  // fsync, rename, fsync of the folder. Afterwards nothing may be appended. On error `path` may be old or new, whole.
  absl::Status Commit();

 private:
  AtomicFileWriter(std::string path, int descriptor);

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;  // -1: committed or moved from
};

// Holds the file `folder`/LOCK with flock(2) until destroyed; the kernel lets go of it when the process dies, however
// it dies. Movable.
class FileLock {
 public:
  // `folder` must exist. FAILED_PRECONDITION "state folder X is already in use by pid N" when another process (or this
  // one) holds it.
  static absl::StatusOr<FileLock> Acquire(const std::string& folder);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_BASE_FILE_H_
