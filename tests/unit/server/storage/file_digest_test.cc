#include "server/storage/file_digest.h"

#include <cstddef>
#include <span>
#include <string>

#include "common/base/digest.h"
#include "common/base/file.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace autoloco::server {
namespace {

TEST(FileDigestTest, IsThatOfAllBytes) {
  const TempFolder folder;
  for (const std::size_t size : {0, 1, 1 << 20, 5'000'001}) {  // of one piece and of several
    std::string bytes(size, 'x');
    if (size > 0) bytes.back() = 'y';
    ASSERT_TRUE(WriteFileAtomically(folder.File("file"), bytes).ok());
    const absl::StatusOr<FileDigest> file = DigestFile(folder.File("file"));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->bytes, size);
    EXPECT_EQ(file->digest, Digest128(std::as_bytes(std::span<const char>(bytes))));
  }
}

TEST(FileDigestTest, NamesWhatCannotBeRead) {
  const TempFolder folder;
  EXPECT_EQ(DigestFile(folder.File("none")).status().code(), absl::StatusCode::kNotFound);
  const absl::Status status = DigestFile(folder.path()).status();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(folder.path()), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace autoloco::server
