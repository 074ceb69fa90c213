#include "common/base/file.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace autoloco {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> Bytes(absl::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

TEST(FileTest, WritesAndReadsBack) {
  const TempFolder folder;
  const std::string contents("a\0b\n", 4);
  ASSERT_TRUE(WriteFileAtomically(folder.File("x"), contents).ok());
  EXPECT_EQ(ReadFile(folder.File("x"), 4).value(), contents);
  ASSERT_TRUE(WriteFileAtomically(folder.File("x"), "").ok());
  EXPECT_EQ(ReadFile(folder.File("x"), 4).value(), "");
  EXPECT_FALSE(std::filesystem::exists(folder.File("x.tmp")));
}

TEST(FileTest, RefusesAFileBeyondTheBound) {
  const TempFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("x"), "12345").ok());
  const absl::Status status = ReadFile(folder.File("x"), 4).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), absl::StrCat(folder.File("x"), " is too long: want at most 4 bytes, got 5"));
}

TEST(FileTest, ErrorsNamePathAndReason) {
  const TempFolder folder;
  const absl::Status missing = ReadFile(folder.File("none"), 10).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(missing.message(), absl::StrCat("cannot open ", folder.File("none"), ": No such file or directory"));
  EXPECT_EQ(ReadFile(folder.path(), 10).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReadFile("/dev/zero", 10).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(WriteFileAtomically(folder.File("no/such"), "x").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(SyncFolder(folder.File("none")).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(FileError("write", "/p", ENOSPC).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(FileError("write", "/p", EACCES).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(FileError("write", "/p", EIO).code(), absl::StatusCode::kUnavailable);
}

TEST(FileTest, AWriterThatDoesNotCommitLeavesTheOldFile) {
  const TempFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("x"), "old").ok());
  {
    auto writer = AtomicFileWriter::Create(folder.File("x"));
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->Append(Bytes("new")).ok());
    EXPECT_TRUE(std::filesystem::exists(folder.File("x.tmp")));
  }
  EXPECT_EQ(ReadFile(folder.File("x"), 10).value(), "old");
  EXPECT_FALSE(std::filesystem::exists(folder.File("x.tmp")));
}

TEST(FileTest, AWriterAppendsPiecesAndCanMove) {
  const TempFolder folder;
  auto created = AtomicFileWriter::Create(folder.File("x"));
  ASSERT_TRUE(created.ok());
  ASSERT_TRUE(created->Append(Bytes("one ")).ok());
  AtomicFileWriter writer = *std::move(created);
  ASSERT_TRUE(writer.Append(Bytes("two")).ok());
  EXPECT_FALSE(std::filesystem::exists(folder.File("x")));
  ASSERT_TRUE(writer.Commit().ok());
  EXPECT_EQ(ReadFile(folder.File("x"), 10).value(), "one two");
}

TEST(FileTest, AWriterWritesAnywhere) {
  const TempFolder folder;
  auto writer = AtomicFileWriter::Create(folder.File("x"));
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->WriteAt(4, Bytes("two")).ok());
  ASSERT_TRUE(writer->Append(Bytes("one")).ok());
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_EQ(ReadFile(folder.File("x"), 10).value(), std::string("one\0two", 7));
}

TEST(FileTest, ALeftOverTemporaryFileIsOverwritten) {
  const TempFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("x.tmp"), "left over from a crash, longer").ok());
  ASSERT_TRUE(WriteFileAtomically(folder.File("x"), "new").ok());
  EXPECT_EQ(ReadFile(folder.File("x"), 100).value(), "new");
}

TEST(FileTest, MakesFoldersTwice) {
  const TempFolder folder;
  ASSERT_TRUE(MakeFolders(folder.File("a/b/c")).ok());
  ASSERT_TRUE(MakeFolders(folder.File("a/b/c")).ok());
  EXPECT_TRUE(std::filesystem::is_directory(folder.File("a/b/c")));
  ASSERT_TRUE(WriteFileAtomically(folder.File("file"), "x").ok());
  EXPECT_FALSE(MakeFolders(folder.File("file")).ok());
  EXPECT_FALSE(MakeFolders(folder.File("file/below")).ok());
}

TEST(FileTest, NamesTheFolderOfAPath) {
  EXPECT_EQ(FolderOf("/a/b/c"), "/a/b");
  EXPECT_EQ(FolderOf("a/b"), "a");
  EXPECT_EQ(FolderOf("/a"), "/");
  EXPECT_EQ(FolderOf("a"), ".");
}

TEST(FileLockTest, ASecondHolderIsToldWhoTheFirstIs) {
  const TempFolder folder;
  {
    const auto first = FileLock::Acquire(folder.path());
    ASSERT_TRUE(first.ok());
    const absl::Status second = FileLock::Acquire(folder.path()).status();
    EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(second.message(), absl::StrCat("state folder ", folder.path(), " is already in use by pid ", getpid()));
  }
  EXPECT_TRUE(FileLock::Acquire(folder.path()).ok());
}

TEST(FileLockTest, HoldsAgainstAnotherProcessAndMoves) {
  const TempFolder folder;
  auto acquired = FileLock::Acquire(folder.path());
  ASSERT_TRUE(acquired.ok());
  const FileLock lock = *std::move(acquired);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(FileLock::Acquire(folder.path()).ok() ? 1 : 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(FileLockTest, ADeadHolderDoesNotLockTheFolder) {
  const TempFolder folder;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto lock = FileLock::Acquire(folder.path());
    _exit(lock.ok() ? 0 : 1);  // without the destructor
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(FileLock::Acquire(folder.path()).ok());
}

TEST(FileLockTest, AMissingFolderIsNamed) {
  const absl::Status status = FileLock::Acquire("/no/such/folder").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/folder/LOCK"));
}

}  // namespace
}  // namespace autoloco
