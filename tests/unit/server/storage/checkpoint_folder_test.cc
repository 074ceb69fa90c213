#include "server/storage/checkpoint_folder.h"

#include <filesystem>
#include <string>

#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace autoloco::server {
namespace {

namespace fs = std::filesystem;

TEST(CheckpointFolderTest, NamesArePaddedAndSortByStep) {
  EXPECT_EQ(CheckpointName(250), "step-0000000250");
  EXPECT_EQ(CheckpointName(123456789012), "step-123456789012");
  const TempFolder temp;
  for (const std::string& name :
       {CheckpointName(9), CheckpointName(123456789012), CheckpointName(10), TemporaryName(11), std::string("step-"),
        std::string("step-x"), std::string("step--1"), std::string("damaged-step-0000000012"),
        std::string("step-99999999999999999999")}) {
    ASSERT_TRUE(MakeFolders(temp.File(name)).ok());
  }
  ASSERT_TRUE(WriteFileAtomically(temp.File("step-0000000013"), "a file").ok());
  const auto found = ListCheckpoints(temp.path());
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 3u);
  EXPECT_EQ((*found)[0].inner_step, 123456789012u);
  EXPECT_EQ((*found)[1].inner_step, 10u);
  EXPECT_EQ((*found)[2].path, temp.File("step-0000000009"));
}

TEST(CheckpointFolderTest, RemovesOnlyTemporaryFolders) {
  const TempFolder temp;
  for (const std::string& name : {CheckpointName(9), TemporaryName(9), TemporaryName(11), std::string("other")}) {
    ASSERT_TRUE(MakeFolders(temp.File(name)).ok());
    ASSERT_TRUE(WriteFileAtomically(temp.File(name + "/file"), "x").ok());
  }
  ASSERT_TRUE(RemoveTemporaryFolders(temp.path()).ok());
  EXPECT_TRUE(fs::exists(temp.File(CheckpointName(9) + "/file")));
  EXPECT_TRUE(fs::exists(temp.File("other/file")));
  EXPECT_FALSE(fs::exists(temp.File(TemporaryName(9))));
  EXPECT_FALSE(fs::exists(temp.File(TemporaryName(11))));
}

TEST(CheckpointFolderTest, PublishingSwapsWithWhatIsThere) {
  const TempFolder temp;
  for (const char* name : {"old", "new"}) {
    ASSERT_TRUE(MakeFolders(temp.File(name)).ok());
    ASSERT_TRUE(WriteFileAtomically(temp.File(std::string(name) + "/file"), name).ok());
  }
  ASSERT_TRUE(PublishFolder(temp.File("old"), temp.File("step")).ok());
  EXPECT_FALSE(fs::exists(temp.File("old")));
  ASSERT_TRUE(PublishFolder(temp.File("new"), temp.File("step")).ok());
  EXPECT_EQ(*ReadFile(temp.File("step/file"), 10), "new");
}

TEST(CheckpointFolderTest, AFolderThatIsNotThereIsNamed) {
  const auto found = ListCheckpoints("/nonexistent/checkpoints");
  EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(found.status().message()), ::testing::HasSubstr("/nonexistent/checkpoints"));
}

}  // namespace
}  // namespace autoloco::server
