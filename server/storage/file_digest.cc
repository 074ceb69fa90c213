#include "server/storage/file_digest.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "common/base/digest.h"
#include "common/base/file.h"

namespace autoloco::server {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

}  // namespace

absl::StatusOr<FileDigest> DigestFile(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // nothing that is no file holds it up
  if (descriptor < 0) return FileError("open", path, errno);
  const absl::Cleanup closing = [descriptor] { close(descriptor); };
  FileDigest result;
  Digest128Stream digest;
  std::vector<std::byte> piece(kPieceBytes);
  while (true) {
    const ssize_t got = read(descriptor, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError("read", path, errno);
    if (got == 0) break;
    const auto size = static_cast<std::size_t>(got);
    digest.Update(std::span<const std::byte>(piece.data(), size));
    result.bytes += size;
  }
  result.digest = digest.Finish();
  return result;
}

}  // namespace autoloco::server
