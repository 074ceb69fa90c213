#include "server/storage/state_folder.h"

#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace autoloco::server {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(StateFolderTest, MakesTheFolderAndDrawsARunId) {
  const TempFolder temp;
  const auto state = StateFolder::Open(temp.File("a/b/state"), "quick");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_THAT(state->run_id(), MatchesRegex("quick-[0-9a-f]{8}"));
  EXPECT_TRUE(std::filesystem::is_directory(state->checkpoints_path()));
  EXPECT_EQ(*state->HasCheckpoints(), false);
}

TEST(StateFolderTest, KeepsTheRunIdWhateverTheName) {
  const TempFolder temp;
  std::string run_id;
  {
    const auto state = StateFolder::Open(temp.path(), "first");
    ASSERT_TRUE(state.ok()) << state.status();
    run_id = state->run_id();
  }
  const auto again = StateFolder::Open(temp.path(), "second");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->run_id(), run_id);
}

TEST(StateFolderTest, TwoRunsHaveTwoIds) {
  const TempFolder temp;
  const auto one = StateFolder::Open(temp.File("one"), "run");
  const auto two = StateFolder::Open(temp.File("two"), "run");
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE(one->run_id(), two->run_id());
}

TEST(StateFolderTest, ALongestNameMakesAValidId) {
  const TempFolder temp;
  const std::string name(64, 'n');
  std::string run_id;
  {
    const auto state = StateFolder::Open(temp.path(), name);
    ASSERT_TRUE(state.ok()) << state.status();
    run_id = state->run_id();
  }
  const auto again = StateFolder::Open(temp.path(), name);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->run_id(), run_id);
}

TEST(StateFolderTest, OneMasterAtATime) {
  const TempFolder temp;
  auto first = StateFolder::Open(temp.path(), "run");
  ASSERT_TRUE(first.ok()) << first.status();
  const StateFolder moved = *std::move(first);
  const auto second = StateFolder::Open(temp.path(), "run");
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(second.status().message(),
            absl::StrCat("state folder ", temp.path(), " is already in use by pid ", getpid()));
}

TEST(StateFolderTest, DrawsNoNewRunIdForAFolderThatHoldsARun) {
  const TempFolder temp;
  ASSERT_TRUE(StateFolder::Open(temp.path(), "run").ok());
  std::filesystem::remove(temp.File("run_id"));
  EXPECT_TRUE(StateFolder::Open(temp.path(), "run").ok()) << "of a run that has left nothing";
  for (const char* left : {"state.sqlite", "checkpoints/step-0000000010/manifest.json"}) {
    std::filesystem::remove(temp.File("run_id"));
    ASSERT_TRUE(MakeFolders(FolderOf(temp.File(left))).ok());
    ASSERT_TRUE(WriteFileAtomically(temp.File(left), "x").ok());
    const std::string starts = *ReadFile(temp.File("starts"), 100);
    const auto state = StateFolder::Open(temp.path(), "run");
    EXPECT_EQ(state.status().code(), absl::StatusCode::kFailedPrecondition) << left;
    EXPECT_THAT(std::string(state.status().message()), HasSubstr("no run_id")) << left;
    EXPECT_FALSE(std::filesystem::exists(temp.File("run_id"))) << left;
    EXPECT_EQ(*ReadFile(temp.File("starts"), 100), starts);
    std::filesystem::remove(temp.File(left));
  }
}

TEST(StateFolderTest, RefusesARunIdThatIsNone) {
  const TempFolder temp;
  for (const std::string& text :
       {std::string(""), std::string("a b\n"), std::string("../x"), std::string(74, 'x'), std::string(1000, 'x')}) {
    ASSERT_TRUE(WriteFileAtomically(temp.File("run_id"), text).ok());
    const auto state = StateFolder::Open(temp.path(), "run");
    EXPECT_FALSE(state.ok()) << text;
    EXPECT_THAT(std::string(state.status().message()), HasSubstr("run_id")) << text;
  }
}

TEST(StateFolderTest, NamesAPathThatIsAFile) {
  const TempFolder temp;
  ASSERT_TRUE(WriteFileAtomically(temp.File("file"), "x").ok());
  const auto state = StateFolder::Open(temp.File("file"), "run");
  EXPECT_FALSE(state.ok());
  EXPECT_THAT(std::string(state.status().message()), HasSubstr(temp.File("file")));
}

}  // namespace
}  // namespace autoloco::server
