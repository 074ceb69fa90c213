#include "server/storage/verify.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/storage/spool.h"
#include "server/storage/state_database.h"
#include "server/storage/state_folder.h"
#include "tests/support/stored_run.h"
#include "tests/support/temp_folder.h"

namespace autoloco::server {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class VerifyTest : public ::testing::Test {
 protected:
  VerifyReport Verify() {
    auto report = VerifyState(state_dir_, &pool_);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : VerifyReport{{}, {std::string(report.status().message())}};
  }
  void Flip(const std::string& path, std::size_t offset) {
    std::string bytes = *ReadFile(path, 1 << 24);
    ASSERT_GT(bytes.size(), offset);
    bytes[offset] ^= 1;
    ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  }
  void Sql(const char* sql) {
    auto database =
        Database::Open(absl::StrCat(state_dir_, "/", kStateDatabaseFile), Database::Mode::kReadWrite, {3, ""});
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE(database->Execute(sql).ok());
  }

  const TempFolder temp_;
  StoredRun run_{temp_.File("state")};
  WorkPool& pool_ = run_.pool;
  const std::string& state_dir_ = run_.state_dir;
};

TEST_F(VerifyTest, AllIsAsRecorded) {
  const VerifyReport report = Verify();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_THAT(report.checked, Contains(HasSubstr("tokens leased 500 = applied 450")));
  EXPECT_THAT(report.checked, Contains(HasSubstr("2 of 2 whole")));
  EXPECT_THAT(report.checked, Contains(HasSubstr("7 payloads")));
  EXPECT_THAT(report.checked, Contains(HasSubstr("round 5: 1 of 2 delivered")));
  EXPECT_THAT(report.checked, Contains(HasSubstr("3 rounds done again from version 2")));
}

TEST_F(VerifyTest, ChangesNothing) {
  const auto listing = [this] {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(state_dir_)) {
      if (!absl::StrContains(entry.path().string(), ".sqlite-")) names.push_back(entry.path().string());
    }
    return names;
  };
  const auto before = listing();
  Verify();
  EXPECT_EQ(listing(), before);
}

TEST_F(VerifyTest, ADamagedPayloadIsNamed) {
  Flip(state_dir_ + "/spool/0000000003/b#2-0", 40);
  EXPECT_THAT(Verify().problems, Contains(HasSubstr("the delta of b#2 for round 3 is damaged")));
}

TEST_F(VerifyTest, ATornPayloadOfTheOpenRoundIsNamed) {
  fs::resize_file(state_dir_ + "/spool/0000000005/a#1-0", 50);
  EXPECT_THAT(Verify().problems, Contains(HasSubstr("the delta of a#1 for round 5 is damaged")));
}

TEST_F(VerifyTest, AMissingPayloadOfTheOpenRoundIsNamed) {
  fs::remove(state_dir_ + "/spool/0000000005/a#1-0");
  EXPECT_THAT(Verify().problems, ElementsAre(HasSubstr("the delta of a#1 for round 5 is missing")));
}

TEST_F(VerifyTest, ADamagedCheckpointIsNamed) {
  Flip(state_dir_ + "/checkpoints/step-0000000040/params.safetensors", 2000);
  const VerifyReport report = Verify();
  EXPECT_THAT(report.problems, ElementsAre(HasSubstr("step-0000000040/params.safetensors: want digest")));
  EXPECT_THAT(report.checked, Contains(HasSubstr("3 rounds done again from version 2")));
}

TEST_F(VerifyTest, ACheckpointOfAnotherHistoryIsNamed) {
  Sql("UPDATE rounds SET params_digest = 'other' WHERE round = 3");
  EXPECT_THAT(Verify().problems, Contains(HasSubstr("version 4 has digest")));
}

TEST_F(VerifyTest, AnotherOrderOfTheSumIsFound) {
  Sql("UPDATE contributions SET weight = 1.0 - weight WHERE round = 4");
  EXPECT_THAT(Verify().problems, ElementsAre(HasSubstr("round 4 done again: want parameters of digest")));
}

TEST_F(VerifyTest, ALedgerThatDoesNotBalanceIsFound) {
  Sql("UPDATE leases SET trained = trained - 1 WHERE round = 2");
  EXPECT_THAT(Verify().problems, ElementsAre(HasSubstr("ledger: its totals")));
}

TEST_F(VerifyTest, APayloadNobodyWasToldOfIsNoFault) {
  auto spool = Spool::Open(state_dir_ + "/spool");
  std::vector<std::string> payloads;
  run_.Push("b", 2, 5, spool->get(), &payloads);
  const VerifyReport report = Verify();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_THAT(report.checked, Contains(HasSubstr("1 that nobody was told of")));
}

TEST_F(VerifyTest, RunsBesideAServer) {
  const auto state = StateFolder::Open(state_dir_, "run");
  const auto database = StateDatabase::Open(state->database_path(), Database::Mode::kReadWrite);
  ASSERT_TRUE((*database)->Store(std::vector<Record>{CheckpointRecord{4}}).ok());
  EXPECT_THAT(Verify().problems, IsEmpty());
}

TEST_F(VerifyTest, NothingThere) {
  const auto report = VerifyState(temp_.File("nowhere"), &pool_);
  EXPECT_EQ(report.status().code(), absl::StatusCode::kNotFound) << report.status();
}

TEST(VerifyLossyTest, TheViewIsCheckedToo) {
  const TempFolder temp;
  StoredRun run(temp.File("state"), {.broadcast = {static_cast<std::uint8_t>(Codec::kRms4), 1.5, 1}});
  const auto whole = VerifyState(run.state_dir, &run.pool);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(whole->problems, IsEmpty());
  EXPECT_THAT(whole->checked, Contains(HasSubstr("3 rounds done again from version 2")));
  auto database =
      Database::Open(absl::StrCat(run.state_dir, "/", kStateDatabaseFile), Database::Mode::kReadWrite, {3, ""});
  ASSERT_TRUE(database->Execute("UPDATE rounds SET view_digest = 'other' WHERE round IN (3, 4)").ok());
  const auto changed = VerifyState(run.state_dir, &run.pool);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_THAT(changed->problems, ElementsAre(HasSubstr("version 4 has a view of digest"),
                                             HasSubstr("round 3 done again: want a view of digest other")));
}

}  // namespace
}  // namespace autoloco::server
