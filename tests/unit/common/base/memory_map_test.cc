#include "common/base/memory_map.h"

#include <utility>

#include "common/base/file.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace autoloco {
namespace {

TEST(MemoryMapTest, ShowsTheBytesOfAFile) {
  const TempFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("x"), "hello").ok());
  MemoryMap map = MemoryMap::Open(folder.File("x")).value();
  EXPECT_EQ(map.text(), "hello");
  EXPECT_EQ(map.bytes().size(), 5u);
  const std::byte* const data = map.bytes().data();
  MemoryMap moved = std::move(map);
  EXPECT_EQ(moved.bytes().data(), data);
  EXPECT_TRUE(map.bytes().empty());  // NOLINT: a moved-from map is empty
  moved = MemoryMap();
  EXPECT_TRUE(moved.bytes().empty());
}

TEST(MemoryMapTest, KeepsTheOldFileWhenItIsReplaced) {
  const TempFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("x"), "old").ok());
  const MemoryMap map = MemoryMap::Open(folder.File("x")).value();
  ASSERT_TRUE(WriteFileAtomically(folder.File("x"), "new and longer").ok());
  EXPECT_EQ(map.text(), "old");
}

TEST(MemoryMapTest, AnEmptyFileHasNoBytes) {
  const TempFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("x"), "").ok());
  EXPECT_EQ(MemoryMap::Open(folder.File("x")).value().text(), "");
}

TEST(MemoryMapTest, RefusesWhatIsNotAFile) {
  const TempFolder folder;
  EXPECT_EQ(MemoryMap::Open(folder.File("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(MemoryMap::Open(folder.path()).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(MemoryMap::Open("/dev/zero").status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace autoloco
