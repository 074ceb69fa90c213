// Recovery's and verify's parts on a small run that was really done: checkpoints, spool, state database.
#include "server/storage/verify.h"

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/codec/delta_codec.h"
#include "common/tensor/decoder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/runtime/apply_commit.h"
#include "server/storage/checkpoint_store.h"
#include "server/storage/replay.h"
#include "server/storage/spool.h"
#include "server/storage/state_database.h"
#include "server/storage/state_folder.h"
#include "tests/support/temp_folder.h"

namespace autoloco::server {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

DecoderShape SmallShape() {
  DecoderShape shape;
  shape.vocab_size = 16;
  shape.width = 8;
  shape.layers = 1;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.mlp_hidden = 12;
  shape.context = 4;
  return shape;
}

// Five rounds of two workers, checkpoints of versions 2 and 4, round 5 open with one delta; the server is gone.
class VerifyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto state = StateFolder::Open(temp_.File("state"), "run");
    ASSERT_TRUE(state.ok()) << state.status();
    auto spool = Spool::Open(state->spool_path());
    auto database = StateDatabase::Open(state->database_path(), Database::Mode::kReadWrite);
    ASSERT_TRUE(spool.ok() && database.ok());
    auto store = FolderCheckpointStore::Open(&*state, SmallShape(), 3);
    ASSERT_TRUE(store.ok()) << store.status();
    auto parameters = ParameterStore::Allocate(layout_);
    InitializeParameters(layout_, 1, 0.02, parameters->params());
    ASSERT_TRUE((*database)->Begin({state->run_id(), parameters->ParamsDigest()}, CoreState()).ok());
    for (Round round = 0; round < 5; ++round) {
      RunRound(round, spool->get(), database->get(), &*parameters);
      if (round % 2 == 0) continue;
      CheckpointContent content;
      content.snapshot.version = round + 1;
      content.snapshot.inner_steps_done = (round + 1) * 10;
      content.params_digest = parameters->ParamsDigest();
      content.params = parameters->params();
      content.momentum = parameters->momentum();
      ASSERT_TRUE((*store)->Write(content).ok());
    }
    RoundOpenedRecord open;
    open.round.number = 5;
    open.round.entries["a"].incarnation = 1;
    open.round.entries["b"].incarnation = 2;
    RoundEntry delivered = open.round.entries["a"];
    delivered.delivered = true;
    delivered.delivered_by = 1;
    delivered.payload_digest = Push("a", 1, 5, spool->get(), &payloads_);
    ASSERT_TRUE((*database)
                    ->Store(std::vector<Record>{open, Accepted("a", 1, 5, delivered.payload_digest),
                                                EntryRecord{5, "a", delivered}})
                    .ok());
    ASSERT_TRUE((*spool)->DropBefore(2).ok());
    state_dir_ = state->path();
  }

  PushRecord Accepted(const std::string& worker, Incarnation incarnation, Round round, const std::string& digest) {
    PushRecord record;
    record.key = {{worker, incarnation}, round, 0};
    record.push.payload_digest = digest;
    return record;
  }

  std::string Push(const std::string& worker, Incarnation incarnation, Round round, Spool* spool,
                   std::vector<std::string>* payloads) {
    std::vector<float> delta(layout_.value_count(), 1e-3f * static_cast<float>(round + incarnation));
    payloads->push_back(EncodeVector(delta, Codec::kFp32, 1));
    const std::string& bytes = payloads->back();
    auto file = spool->Create(bytes.size());
    EXPECT_TRUE(file.ok()) << file.status();
    std::memcpy((*file)->bytes().data(), bytes.data(), bytes.size());
    const Spool::Acceptance acceptance = {{{worker, incarnation}, round, 0}, file->get()};
    EXPECT_TRUE(spool->Accept({&acceptance, 1}).ok());
    return Digest128(std::as_bytes(std::span<const char>(bytes)));
  }

  void RunRound(Round round, Spool* spool, StateDatabase* database, ParameterStore* parameters) {
    std::vector<std::string> payloads;
    const std::string a = Push("a", 1, round, spool, &payloads);
    const std::string b = Push("b", 2, round, spool, &payloads);
    StartCommit decision;
    decision.round = round;
    decision.contributions = {{{{"a", 1}, round, 0}, 0.25}, {{{"b", 2}, round, 0}, 0.75}};
    std::vector<CommitDelta> deltas;
    for (std::size_t i = 0; i < 2; ++i) {
      deltas.push_back({std::as_bytes(std::span<const char>(payloads[i])), i == 0 ? "a" : "b",
                        decision.contributions[i].weight});
    }
    auto outcome = ApplyCommit(deltas, decision.step, parameters, &pool_);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    RoundOpenedRecord open;
    open.round.number = round;
    RoundRecord history;
    history.round = round;
    RunRecord progress;
    progress.progress.version = round + 1;
    progress.progress.inner_steps_done = (round + 1) * 10;
    const LeaseRecord lease = {{round, 0, {"a", 1}}, {100, 90, LeaseFate::kApplied}};
    const std::vector<Record> records = {open,
                                         Accepted("a", 1, round, a),
                                         Accepted("b", 2, round, b),
                                         RoundDecidedRecord{decision, history},
                                         RoundCommittedRecord{round, outcome->params_digest, outcome->stats, history},
                                         lease,
                                         LedgerRecord{{(round + 1) * 100, (round + 1) * 90, 0, 0, 0, (round + 1) * 10}},
                                         progress};
    const absl::Status stored = database->Store(records);
    ASSERT_TRUE(stored.ok()) << stored;
  }

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
        Database::Open(absl::StrCat(state_dir_, "/", kStateDatabaseFile), Database::Mode::kReadWrite, {1, ""});
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE(database->Execute(sql).ok());
  }

  const TempFolder temp_;
  const Layout layout_ = *MakeDecoderLayout(SmallShape());
  WorkPool pool_{2};
  std::vector<std::string> payloads_;
  std::string state_dir_;
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
  Push("b", 2, 5, spool->get(), &payloads_);
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

}  // namespace
}  // namespace autoloco::server
