#include "server/runtime/encoded_snapshot.h"

#include <gtest/gtest.h>

namespace autoloco::server {
namespace {

TEST(EncodedSnapshotTest, CopiesAcrossBlocks) {
  const EncodedSnapshot snapshot({}, {"abc", "d", "efghij"});
  const std::string whole = "abcdefghij";
  ASSERT_EQ(snapshot.payload_bytes(), whole.size());
  std::string piece;
  for (std::size_t offset = 0; offset <= whole.size(); ++offset) {
    for (std::size_t size = 0; offset + size <= whole.size(); ++size) {
      snapshot.Copy(offset, size, &piece);
      EXPECT_EQ(piece, whole.substr(offset, size)) << offset << "+" << size;
    }
  }
}

TEST(EncodedSnapshotTest, NoBlocksNoBytes) {
  const EncodedSnapshot snapshot({.version = 3, .params_digest = "d", .layout_hash = 4, .value_count = 0}, {});
  EXPECT_EQ(snapshot.payload_bytes(), 0);
  EXPECT_EQ(snapshot.header().version, 3);
}

}  // namespace
}  // namespace autoloco::server
