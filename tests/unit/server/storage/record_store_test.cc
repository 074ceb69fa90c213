#include "server/storage/record_store.h"

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/runtime_fakes.h"
#include "tests/support/temp_folder.h"

namespace autoloco::server {
namespace {

namespace fs = std::filesystem;

PushKey Key(Round round) { return {{"w", 1}, round, 0}; }

class RecordStoreTest : public ::testing::Test {
 protected:
  void Open(const DurableRecordStore::Settings& settings = {}) {
    store_ = std::make_unique<DurableRecordStore>(
        DurableRecordStore::Tools{MonotonicClock(), database_.get(), spool_.get(), &telemetry_, &inbox_}, settings);
  }
  std::shared_ptr<Payload> Filled(const std::string& text) {
    auto payload = std::make_shared<Payload>(*store_->Reserve(text.size()));
    EXPECT_TRUE(payload->Put(0, text).ok());
    return payload;
  }
  static RecordBatch Batch(std::uint64_t sequence) {
    RunRecord record;
    record.progress.version = sequence;
    return {sequence, {record}, {}};
  }
  // Files of payloads that have no key.
  std::ptrdiff_t Incoming() const {
    return std::distance(fs::directory_iterator(temp_.File("spool/incoming")), fs::directory_iterator());
  }
  template <typename Wanted>
  Wanted Next() {
    const std::optional<Input> input = inbox_.Take(MonotonicClock()->Now() + absl::Seconds(30));
    EXPECT_TRUE(input.has_value());
    const Wanted* const wanted = input ? std::get_if<Wanted>(&*input) : nullptr;
    EXPECT_NE(wanted, nullptr);
    return wanted == nullptr ? Wanted() : *wanted;
  }
  void WaitFor(std::uint64_t sequence) {
    std::uint64_t stored = 0;
    while (stored < sequence && !HasFailure()) {
      const std::uint64_t next = Next<RecordsStored>().sequence;
      EXPECT_GT(next, stored);
      stored = next;
    }
  }
  // Batch 1, with a payload of round 3 for which there is no folder: it is tried again until LetTheDiskGoOn.
  void StoreInVain() {
    Open({.retry_every = absl::Milliseconds(1), .retry_for = absl::Hours(1)});
    ASSERT_TRUE(WriteFileAtomically(temp_.File("spool/0000000003"), "in the way").ok());
    RecordBatch batch = Batch(1);
    batch.payloads = {{Key(3), Filled("kept")}};
    store_->Store(std::move(batch));
    EXPECT_FALSE(Next<StorageTrouble>().status.ok());
  }
  void LetTheDiskGoOn() {
    fs::remove(temp_.File("spool/0000000003"));
    while (!HasFailure() && !Next<StorageTrouble>().status.ok()) continue;
    WaitFor(1);
  }

  const TempFolder temp_;
  const std::unique_ptr<StateDatabase> database_ =
      *StateDatabase::Open(temp_.File(kStateDatabaseFile), Database::Mode::kReadWrite);
  const std::unique_ptr<Spool> spool_ = *Spool::Open(temp_.File("spool"));
  FakeTelemetry telemetry_;
  Inbox inbox_{MonotonicClock()};
  std::unique_ptr<DurableRecordStore> store_;
};

TEST_F(RecordStoreTest, PayloadAndRecordsAreThereWhenItSaysSo) {
  Open();
  const auto payload = Filled("a delta");
  RecordBatch batch = Batch(1);
  batch.payloads = {{Key(3), payload}};
  store_->Store(std::move(batch));
  WaitFor(1);
  EXPECT_EQ(spool_->Read(Key(3))->text(), "a delta");
  EXPECT_EQ(database_->Load()->run.version, 1u);
  EXPECT_EQ(std::memcmp(payload->bytes().data(), "a delta", 7), 0);
}

TEST_F(RecordStoreTest, AllOfManyBatchesAndNoneTwice) {
  Open();
  for (std::uint64_t sequence = 1; sequence <= 50; ++sequence) store_->Store(Batch(sequence));
  WaitFor(50);
  store_.reset();
  EXPECT_EQ(database_->Load()->run.version, 50u);
  EXPECT_FALSE(inbox_.Take(MonotonicClock()->Now()).has_value());
}

TEST_F(RecordStoreTest, DropsComeInOrder) {
  Open();
  const auto one = Filled("one");
  const auto two = Filled("two");
  RecordBatch batch = Batch(1);
  batch.payloads = {{Key(3), one}};
  store_->Store(std::move(batch));
  store_->DropSpooled(Key(3));
  batch = Batch(2);
  batch.payloads = {{Key(3), two}, {Key(1), Filled("old")}};
  store_->Store(std::move(batch));
  store_->DropSpooledBefore(3);
  store_.reset();
  EXPECT_EQ(spool_->Read(Key(3))->text(), "two");
  EXPECT_EQ(spool_->List()->size(), 1u);
}

TEST_F(RecordStoreTest, AFailureIsToldAndTriedAgain) {
  StoreInVain();
  EXPECT_EQ(database_->Identity().status(), absl::OkStatus());
  LetTheDiskGoOn();
  EXPECT_EQ(spool_->Read(Key(3))->text(), "kept");
  EXPECT_THAT(telemetry_.lines(), ::testing::Contains("storage failed"));
}

// While the disk is tried again and again, what is given up does not keep its room.
TEST_F(RecordStoreTest, ADroppedPayloadGoesAtOnceWhateverTheDiskDoes) {
  StoreInVain();
  auto dropped = Filled("dropped");
  dropped->memory()->Arrived();
  EXPECT_EQ(Incoming(), 2);
  dropped.reset();
  EXPECT_EQ(Incoming(), 1);
  LetTheDiskGoOn();
}

TEST_F(RecordStoreTest, APayloadMayOutliveTheStore) {
  Open();
  const auto payload = Filled("a delta");
  store_.reset();
  payload->memory()->Arrived();
  EXPECT_EQ(std::memcmp(payload->bytes().data(), "a delta", 7), 0);
}

TEST_F(RecordStoreTest, GivesUpInTheEnd) {
  Open({.retry_every = absl::Milliseconds(1), .retry_for = absl::ZeroDuration()});
  ASSERT_TRUE(WriteFileAtomically(temp_.File("spool/0000000003"), "in the way").ok());
  RecordBatch batch = Batch(1);
  batch.payloads = {{Key(3), Filled("lost")}};
  store_->Store(std::move(batch));
  store_->Store(Batch(2));
  EXPECT_FALSE(Next<StorageGaveUp>().status.ok());
  store_.reset();
  EXPECT_FALSE(inbox_.Take(MonotonicClock()->Now()).has_value());
  EXPECT_EQ(*database_->Load(), CoreState());  // nothing after what could not be stored
}

TEST_F(RecordStoreTest, AnUnusableFolderTurnsAPushAwayForNow) {
  Open();
  fs::remove_all(temp_.File("spool/incoming"));
  const absl::Status status = store_->Reserve(10).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("10 bytes"));
  EXPECT_THAT(telemetry_.lines(), ::testing::ElementsAre("room failed"));
}

TEST_F(RecordStoreTest, NoRoomIsToldUntilThereIsSomeWhetherOrNotThePushComesAgain) {
  Open({.retry_every = absl::Milliseconds(1), .retry_for = absl::Hours(1)});
  fs::remove_all(temp_.File("spool/incoming"));
  EXPECT_FALSE(store_->Reserve(10).ok());
  const auto first = Next<StorageTrouble>();
  EXPECT_EQ(first.task, StorageTask::kRoom);
  EXPECT_FALSE(first.status.ok());
  EXPECT_EQ(Next<StorageTrouble>().status, first.status);  // the same text, though it was tried again
  fs::create_directories(temp_.File("spool/incoming"));
  absl::Status last = first.status;
  while (!HasFailure() && !last.ok()) last = Next<StorageTrouble>().status;
  store_.reset();
  EXPECT_FALSE(inbox_.Take(MonotonicClock()->Now()).has_value());
  EXPECT_THAT(telemetry_.lines(), ::testing::Contains("room is there").Times(1));
  EXPECT_TRUE(fs::is_empty(temp_.File("spool/incoming")));
}

TEST_F(RecordStoreTest, RoomThatIsFoundByThePushItselfEndsTheTrouble) {
  Open({.retry_every = absl::Hours(1), .retry_for = absl::Hours(2)});
  fs::remove_all(temp_.File("spool/incoming"));
  EXPECT_FALSE(store_->Reserve(10).ok());
  EXPECT_FALSE(Next<StorageTrouble>().status.ok());
  fs::create_directories(temp_.File("spool/incoming"));
  EXPECT_TRUE(store_->Reserve(10).ok());
  EXPECT_TRUE(Next<StorageTrouble>().status.ok());
}

TEST_F(RecordStoreTest, GivesUpOnRoomInTheEndAndStoresRecordsYet) {
  Open({.retry_every = absl::Milliseconds(1), .retry_for = absl::Milliseconds(5)});
  fs::remove_all(temp_.File("spool/incoming"));
  EXPECT_FALSE(store_->Reserve(10).ok());
  std::size_t gave_up = 0;
  for (std::size_t i = 0; i < 1000 && gave_up == 0 && !HasFailure(); ++i) {
    const std::optional<Input> input = inbox_.Take(MonotonicClock()->Now() + absl::Seconds(30));
    ASSERT_TRUE(input.has_value());
    if (const auto* end = std::get_if<StorageGaveUp>(&*input)) {
      EXPECT_EQ(end->task, StorageTask::kRoom);
      ++gave_up;
    } else {
      EXPECT_TRUE(std::holds_alternative<StorageTrouble>(*input));
    }
  }
  EXPECT_EQ(gave_up, 1u);
  store_->Store(Batch(1));
  WaitFor(1);
}

TEST_F(RecordStoreTest, WhatWasAskedForIsStoredBeforeTheEnd) {
  Open();
  for (std::uint64_t sequence = 1; sequence <= 5; ++sequence) store_->Store(Batch(sequence));
  store_.reset();
  EXPECT_EQ(database_->Load()->run.version, 5u);
}

}  // namespace
}  // namespace autoloco::server
