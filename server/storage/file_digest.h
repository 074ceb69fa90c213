// Size and digest of a file that may be as large as the model, in little memory: what a checkpoint's manifest says of
// its files. Not through a memory map, whose pages would count as the server's own.
#ifndef AUTOLOCO_SERVER_STORAGE_FILE_DIGEST_H_
#define AUTOLOCO_SERVER_STORAGE_FILE_DIGEST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace autoloco::server {

struct FileDigest {
  std::uint64_t bytes = 0;
  std::string digest;  // Digest128 of all of them
};

// Reads the file from its beginning to its end. Errors as FileError.
absl::StatusOr<FileDigest> DigestFile(const std::string& path);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_FILE_DIGEST_H_
