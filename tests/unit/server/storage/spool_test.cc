#include "server/storage/spool.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/crash_point.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace autoloco::server {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

PushKey Key(const std::string& worker, Incarnation incarnation, Round round) {
  return {{worker, incarnation}, round, 0};
}

class SpoolTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open() {
    auto spool = Spool::Open(folder_);
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
  }
  std::unique_ptr<SpoolFile> Filled(const std::string& text) {
    auto file = spool_->Create(text.size());
    EXPECT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->Write(0, std::as_bytes(std::span<const char>(text))).ok());
    return *std::move(file);
  }
  absl::Status Accept(const PushKey& key, SpoolFile* file) {
    const Spool::Acceptance acceptance = {key, file};
    return spool_->Accept({&acceptance, 1});
  }
  void Store(const PushKey& key, const std::string& text) {
    const auto file = Filled(text);
    ASSERT_TRUE(Accept(key, file.get()).ok());
  }
  std::string Read(const PushKey& key) {
    const auto map = spool_->Read(key);
    return map.ok() ? std::string(map->text()) : std::string(map.status().ToString());
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    const absl::StatusOr<std::vector<Spool::Entry>> entries = spool_->List();
    if (!entries.ok()) return {entries.status().ToString()};
    for (const Spool::Entry& entry : *entries) {
      names.push_back(entry.key.worker.name + "#" + std::to_string(entry.key.worker.incarnation) + " " +
                      std::to_string(entry.key.round) + " " + std::to_string(entry.bytes));
    }
    return names;
  }
  std::size_t Incoming() {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_ + "/incoming"), fs::directory_iterator()));
  }

  const TempFolder temp_;
  const std::string folder_ = temp_.File("spool");
  std::unique_ptr<Spool> spool_;
};

TEST_F(SpoolTest, AnAcceptedPayloadIsFoundUnderItsKey) {
  const auto file = Filled("delta of dc1");
  ASSERT_TRUE(Accept(Key("dc1", 3, 12), file.get()).ok());
  EXPECT_TRUE(fs::exists(folder_ + "/0000000012/dc1#3-0"));
  EXPECT_EQ(Read(Key("dc1", 3, 12)), "delta of dc1");
  EXPECT_EQ(std::memcmp(file->bytes().data(), "delta of dc1", 12), 0);
  EXPECT_THAT(Read(Key("dc1", 4, 12)), HasSubstr("NOT_FOUND"));
  Store(Key("a-b.c_d", 1, 13), "other");
  EXPECT_THAT(Names(), UnorderedElementsAre("dc1#3 12 12", "a-b.c_d#1 13 5"));
}

TEST_F(SpoolTest, APayloadThatIsBeingWrittenIsReadAndAcceptedLikeAnother) {
  const auto file = Filled("delta of dc1");
  file->StartWriting();
  EXPECT_EQ(std::memcmp(file->bytes().data(), "delta of dc1", 12), 0);
  EXPECT_THAT(Names(), UnorderedElementsAre());
  ASSERT_TRUE(Accept(Key("dc1", 3, 12), file.get()).ok());
  EXPECT_EQ(Read(Key("dc1", 3, 12)), "delta of dc1");
}

TEST_F(SpoolTest, ABatchIsAcceptedAndMayBeAcceptedAgain) {
  const auto one = Filled("one");
  const auto two = Filled("two");
  const std::vector<Spool::Acceptance> both = {{Key("a", 1, 1), one.get()}, {Key("b", 2, 2), two.get()}};
  ASSERT_TRUE(spool_->Accept(both).ok());
  ASSERT_TRUE(spool_->Accept(both).ok());
  EXPECT_EQ(Read(Key("a", 1, 1)), "one");
  EXPECT_EQ(Read(Key("b", 2, 2)), "two");
}

TEST_F(SpoolTest, WhatIsNotAcceptedGoes) {
  { const auto file = Filled("cancelled"); }
  EXPECT_EQ(Incoming(), 0u);
  auto file = Filled("the process is killed");
  EXPECT_EQ(Incoming(), 1u);
  Open();
  EXPECT_EQ(Incoming(), 0u);
  EXPECT_TRUE(Names().empty());
}

TEST_F(SpoolTest, TheSameKeyIsReplaced) {
  Store(Key("a", 1, 1), "of the aborted attempt");
  Store(Key("a", 1, 1), "of the next one");
  EXPECT_EQ(Read(Key("a", 1, 1)), "of the next one");
}

TEST_F(SpoolTest, DropsByKeyAndByRound) {
  for (Round round = 8; round < 12; ++round) {
    Store(Key("a", 1, round), "x");
    Store(Key("b", 1, round), "y");
  }
  ASSERT_TRUE(spool_->Drop(Key("a", 1, 11)).ok());
  ASSERT_TRUE(spool_->Drop(Key("a", 1, 11)).ok());
  ASSERT_TRUE(spool_->DropBefore(10).ok());
  EXPECT_THAT(Names(), UnorderedElementsAre("a#1 10 1", "b#1 10 1", "b#1 11 1"));
  ASSERT_TRUE(spool_->Drop(Key("b", 1, 11)).ok());
  EXPECT_FALSE(fs::exists(folder_ + "/0000000011"));
}

TEST_F(SpoolTest, ForeignNamesAreLeftAlone) {
  Store(Key("a", 1, 1), "x");
  for (const char* name :
       {"0000000001/a", "0000000001/a#1", "0000000001/a#x-0", "0000000001/#1-0", "0000000001/a b#1-0"}) {
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/" + name, "x").ok());
  }
  ASSERT_TRUE(MakeFolders(folder_ + "/notes").ok());
  EXPECT_THAT(Names(), UnorderedElementsAre("a#1 1 1"));
  ASSERT_TRUE(spool_->DropBefore(1).ok());
  EXPECT_TRUE(fs::exists(folder_ + "/notes"));
}

TEST_F(SpoolTest, AFullDiskIsAnErrorBeforeTheFirstByte) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {100000, before.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = spool_->Create(1 << 20).status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder_));
  EXPECT_EQ(Incoming(), 0u);
}

TEST_F(SpoolTest, AnUnwritableFolderIsNamed) {
  fs::remove_all(folder_ + "/incoming");
  const absl::Status status = spool_->Create(10).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder_));
}

TEST_F(SpoolTest, AcceptFailsAndIsTriedAgain) {
  const auto file = Filled("kept");
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/0000000005", "in the way").ok());
  EXPECT_FALSE(Accept(Key("a", 1, 5), file.get()).ok());
  fs::remove(folder_ + "/0000000005");
  ASSERT_TRUE(Accept(Key("a", 1, 5), file.get()).ok());
  EXPECT_EQ(Read(Key("a", 1, 5)), "kept");
}

TEST_F(SpoolTest, AKillLeavesNothingOrTheWholePayload) {
  for (const char* point : {"spool_before", "spool_after"}) {
    const pid_t child = fork();
    if (child == 0) {
      if (!ArmCrashPoint(point).ok()) _exit(1);
      Store(Key("a", 1, 1), "whole");
      _exit(2);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << point;
    Open();
    EXPECT_EQ(Incoming(), 0u);
    if (std::string(point) == "spool_after") {
      EXPECT_EQ(Read(Key("a", 1, 1)), "whole");
    } else {
      EXPECT_TRUE(Names().empty());
    }
  }
}

TEST_F(SpoolTest, ReadingChangesNothing) {
  auto file = Filled("incoming");
  const auto reader = Spool::OpenForReading(folder_);
  const auto entries = reader->List();
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_TRUE(entries->empty());
  EXPECT_EQ(Incoming(), 1u);
}

}  // namespace
}  // namespace autoloco::server
