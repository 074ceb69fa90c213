#include "server/storage/database.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <string>
#include <utility>

#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace autoloco::server {
namespace {

using ::testing::HasSubstr;

constexpr Database::Schema kSchema = {3, "CREATE TABLE t (k INTEGER PRIMARY KEY, x REAL, name TEXT)"};

class DatabaseTest : public ::testing::Test {
 protected:
  absl::StatusOr<Database> Open(Database::Mode mode = Database::Mode::kReadWrite,
                                const Database::Schema& schema = kSchema) {
    return Database::Open(path_, mode, schema);
  }
  static absl::Status Insert(Database* database, std::uint64_t key, double number) {
    absl::StatusOr<Statement> insert = database->Prepare("INSERT INTO t VALUES (?, ?, ?)");
    if (!insert.ok()) return insert.status();
    return insert->Bind(key).Bind(number).Bind("a row").Run();
  }
  std::uint64_t Count() {
    absl::StatusOr<Database> database = Open();
    if (!database.ok()) return 999;
    absl::StatusOr<Statement> select = database->Prepare("SELECT count(*) FROM t");
    std::uint64_t count = 999;
    if (select.ok() && select->Step().value_or(false)) select->Read(&count);
    return count;
  }

  const TempFolder temp_;
  const std::string path_ = temp_.File("state.sqlite");
};

TEST_F(DatabaseTest, NumbersComeBackBitForBit) {
  absl::StatusOr<Database> database = Open();
  ASSERT_TRUE(database.ok()) << database.status();
  const std::uint64_t keys[] = {0, 1, std::uint64_t{1} << 63, std::numeric_limits<std::uint64_t>::max()};
  const double numbers[] = {0.1, 3, -std::numeric_limits<double>::infinity(), std::nan("")};
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Insert(&*database, keys[i], numbers[i]).ok());
  absl::StatusOr<Statement> select = database->Prepare("SELECT k, x, name FROM t WHERE k = ?");
  ASSERT_TRUE(select.ok()) << select.status();
  for (int i = 0; i < 4; ++i) {
    select->Bind(keys[i]);
    ASSERT_TRUE(select->Step().value());
    std::uint64_t key = 7;
    double number = 7;
    std::string name;
    select->Read(&key);
    select->Read(&number);
    select->Read(&name);
    ASSERT_TRUE(select->status().ok()) << select->status();
    EXPECT_EQ(key, keys[i]);
    EXPECT_TRUE(number == numbers[i] || (std::isnan(number) && std::isnan(numbers[i])));
    EXPECT_EQ(name, "a row");
    EXPECT_FALSE(select->Step().value());
  }
}

TEST_F(DatabaseTest, NamesAColumnOfAnotherType) {
  absl::StatusOr<Database> database = Open();
  ASSERT_TRUE(database.ok()) << database.status();
  ASSERT_TRUE(Insert(&*database, 1 << 30, 2).ok());
  absl::StatusOr<Statement> select = database->Prepare("SELECT x, name, k * 8 AS wide FROM t");
  std::uint64_t number = 5;
  std::uint32_t narrow = 6;
  ASSERT_TRUE(select->Step().value());
  select->Read(&number);
  EXPECT_EQ(select->status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(select->status().message()), HasSubstr("state.sqlite: x: want a whole number"));
  EXPECT_EQ(number, 5u);
  EXPECT_FALSE(select->Step().ok());

  ASSERT_TRUE(select->Step().value());
  std::string text;
  double fraction = 0;
  select->Read(&fraction);
  select->Read(&text);
  select->Read(&narrow);
  EXPECT_THAT(std::string(select->status().message()), HasSubstr("wide: want a whole number below 2^32"));
  EXPECT_EQ(narrow, 6u);
}

TEST_F(DatabaseTest, WhatIsNotCommittedHasNotHappened) {
  {
    absl::StatusOr<Database> database = Open();
    ASSERT_TRUE(database.ok()) << database.status();
    {
      auto transaction = Transaction::Begin(&*database);
      ASSERT_TRUE(transaction.ok()) << transaction.status();
      ASSERT_TRUE(Insert(&*database, 1, 1).ok());
    }
    auto transaction = Transaction::Begin(&*database);
    ASSERT_TRUE(transaction.ok()) << transaction.status();
    ASSERT_TRUE(Insert(&*database, 2, 2).ok());
    ASSERT_TRUE(transaction->Commit().ok());
  }
  EXPECT_EQ(Count(), 1u);
}

TEST_F(DatabaseTest, WhatWasCommittedSurvivesAKill) {
  const pid_t child = fork();
  if (child == 0) {
    absl::StatusOr<Database> database = Open();
    if (!database.ok() || !Insert(&*database, 1, 1).ok()) _exit(1);
    absl::StatusOr<Transaction> transaction = Transaction::Begin(&*database);
    if (!transaction.ok() || !Insert(&*database, 2, 2).ok()) _exit(2);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
  EXPECT_EQ(Count(), 1u);
}

TEST_F(DatabaseTest, ReadsBesideAWriter) {
  EXPECT_EQ(Open(Database::Mode::kReadOnly).status().code(), absl::StatusCode::kNotFound);
  absl::StatusOr<Database> writer = Open();
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(Insert(&*writer, 1, 1).ok());
  absl::StatusOr<Database> reader = Open(Database::Mode::kReadOnly);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(Insert(&*reader, 2, 2).code(), absl::StatusCode::kPermissionDenied);
  ASSERT_TRUE(Insert(&*writer, 3, 3).ok());
}

TEST_F(DatabaseTest, RefusesAnotherSchema) {
  ASSERT_TRUE(Open().ok());
  Database::Schema older = kSchema;
  older.version = 2;
  const absl::Status newer_file = Open(Database::Mode::kReadWrite, older).status();
  EXPECT_EQ(newer_file.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(newer_file.message()), HasSubstr("has schema version 3, this program knows 2: it was written "
                                                           "by a newer one"));
  EXPECT_THAT(std::string(newer_file.message()), HasSubstr(path_));
}

TEST_F(DatabaseTest, NamesADamagedFile) {
  {
    absl::StatusOr<Database> database = Open();
    ASSERT_TRUE(database.ok()) << database.status();
    absl::StatusOr<Transaction> transaction = Transaction::Begin(&*database);
    for (std::uint64_t key = 0; key < 2000; ++key) ASSERT_TRUE(Insert(&*database, key, 0.5).ok());
    ASSERT_TRUE(transaction->Commit().ok());
  }
  std::string bytes = *ReadFile(path_, 1 << 24);
  ASSERT_GT(bytes.size(), 40960u);
  const std::string cut = bytes.substr(0, 20000);
  for (std::size_t i = 9000; i < 30000; ++i) bytes[i] = static_cast<char>(i * 7);
  for (const std::string& damaged : {bytes, cut, std::string(5000, 'x')}) {
    ASSERT_TRUE(WriteFileAtomically(path_, damaged).ok());
    const absl::Status status = Open().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
  }
}

TEST_F(DatabaseTest, RefusesADatabaseOfAnotherKind) {
  {
    absl::StatusOr<Database> other = Open();
    ASSERT_TRUE(other->Execute("DROP TABLE schema").ok());
  }
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(DatabaseTest, AFolderThatIsNotThere) {
  const absl::Status status = Database::Open(temp_.File("no/where"), Database::Mode::kReadWrite, kSchema).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
}

}  // namespace
}  // namespace autoloco::server
