#include "server/storage/recovery.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/stored_run.h"
#include "tests/support/temp_folder.h"

namespace autoloco::server {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RecoveryTest : public ::testing::Test {
 protected:
  explicit RecoveryTest(const CommitMethod& method = {}, Round first_kept = 2)
      : run_(temp_.File("state"), method, first_kept) {}

  // A server starts on the folder.
  void Start() {
    tools_ = {};
    spool_.reset();
    database_.reset();
    folder_.reset();
    folder_ = std::make_unique<StateFolder>(*StateFolder::Open(run_.state_dir, "run"));
    database_ = *StateDatabase::Open(folder_->database_path(), Database::Mode::kReadWrite);
    spool_ = *Spool::Open(folder_->spool_path());
    tools_ = {folder_.get(), database_.get(), spool_.get(), &parameters_, &run_.pool, lossy_, 16};
  }
  absl::StatusOr<Recovered> Go() {
    Start();
    return Recover(tools_, StoredRun::StartAnew);
  }
  std::string Error() { return std::string(Go().status().ToString()); }
  std::string Checkpoint(int step) { return absl::StrCat(run_.state_dir, "/checkpoints/step-00000000", step); }
  void Damage(const std::string& path) {
    std::string bytes = *ReadFile(path, 1 << 24);
    bytes[bytes.size() / 2] ^= 1;
    ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  }
  void Sql(const char* sql) {
    auto database =
        Database::Open(absl::StrCat(run_.state_dir, "/", kStateDatabaseFile), Database::Mode::kReadWrite, {3, ""});
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE(database->Execute(sql).ok());
  }

  const TempFolder temp_;
  StoredRun run_;
  bool lossy_ = false;  // as configured
  ParameterStore parameters_ = *ParameterStore::Allocate(run_.layout);
  std::unique_ptr<StateFolder> folder_;
  std::unique_ptr<StateDatabase> database_;
  std::unique_ptr<Spool> spool_;
  RecoveryTools tools_;
};

TEST_F(RecoveryTest, GoesOnWhereTheRunWas) {
  const auto recovered = Go();
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  EXPECT_FALSE(recovered->new_run);
  EXPECT_EQ(recovered->state.run.version, 5u);
  EXPECT_EQ(recovered->params_digest, run_.digests[5]);
  EXPECT_EQ(parameters_.ParamsDigest(), run_.digests[5]);
  EXPECT_EQ(recovered->checkpoint, Checkpoint(40));
  EXPECT_EQ(recovered->state.checkpoint, 4u);
  ASSERT_TRUE(recovered->state.round.has_value());
  EXPECT_EQ(recovered->state.round->number, 5u);
  EXPECT_TRUE(recovered->state.round->entries.at("a").delivered);
  ASSERT_EQ(recovered->payloads.size(), 1u);
  EXPECT_EQ(recovered->payloads[0].key.worker.name, "a");
  EXPECT_TRUE(recovered->payloads[0].payload->whole());
  EXPECT_EQ(recovered->state.run.history.size(), 5u);
}

TEST_F(RecoveryTest, ADamagedCheckpointIsSetAsideAndTheOneBeforeUsed) {
  Damage(Checkpoint(40) + "/params.safetensors");
  const auto recovered = Go();
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  EXPECT_EQ(recovered->checkpoint, Checkpoint(20));
  EXPECT_EQ(recovered->params_digest, run_.digests[5]);
  EXPECT_EQ(recovered->state.checkpoint, 2u);
  EXPECT_TRUE(fs::exists(run_.state_dir + "/checkpoints/damaged-step-0000000040"));
}

class NoCheckpointWholeTest : public RecoveryTest {
 protected:
  NoCheckpointWholeTest() : RecoveryTest({}, 0) {
    for (const int step : {20, 40}) Damage(Checkpoint(step) + "/outer.safetensors");
    // As a checkpoint leaves them that is found to be damaged late.
    std::fill(parameters_.params().begin(), parameters_.params().end(), 7.0f);
    std::fill(parameters_.momentum().begin(), parameters_.momentum().end(), 7.0f);
  }
};

TEST_F(NoCheckpointWholeTest, TheRunIsDoneAgainFromItsStart) {
  const auto recovered = Go();
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  EXPECT_EQ(recovered->checkpoint, "");
  EXPECT_EQ(recovered->params_digest, run_.digests[5]);
  EXPECT_EQ(parameters_.ParamsDigest(), run_.digests[5]);
  EXPECT_FALSE(recovered->new_run);
  EXPECT_FALSE(recovered->state.checkpoint.has_value());  // so that the payloads stay
  EXPECT_EQ(recovered->payloads.size(), 1u);
  EXPECT_TRUE(fs::exists(run_.state_dir + "/checkpoints/damaged-step-0000000020"));
  EXPECT_TRUE(fs::exists(run_.state_dir + "/checkpoints/damaged-step-0000000040"));
  EXPECT_EQ(Go()->params_digest, run_.digests[5]);  // and the next start finds no checkpoint
}

TEST_F(NoCheckpointWholeTest, NotWithADeltaMissing) {
  fs::remove_all(run_.state_dir + "/spool/0000000001");
  const std::string error = Error();
  EXPECT_THAT(error, HasSubstr("DATA_LOSS: none of the 2 checkpoints"));
  EXPECT_THAT(error, HasSubstr("done again from its start: the delta of a#1 for round 1 is missing"));
  EXPECT_TRUE(fs::exists(Checkpoint(40)));
}

TEST_F(NoCheckpointWholeTest, NotWithAnotherVersionZero) {
  Sql("UPDATE run SET initial_digest = 'other'");
  EXPECT_THAT(Error(), HasSubstr("done again from its start: parameters of version 0: want digest other"));
}

TEST_F(NoCheckpointWholeTest, NotWhereTheRunBeganWithACheckpoint) {
  Sql("UPDATE run SET initial_digest = ''");
  EXPECT_THAT(Error(), HasSubstr("done again from its start: state database"));
}

TEST_F(NoCheckpointWholeTest, NotWithoutTheStateDatabase) {
  for (const char* end : {"", "-wal", "-shm"}) fs::remove(absl::StrCat(run_.state_dir, "/", kStateDatabaseFile, end));
  EXPECT_THAT(Error(), ::testing::StartsWith("DATA_LOSS: none of the 2 checkpoints"));
  EXPECT_EQ(spool_->List()->size(), 11u);
}

TEST_F(RecoveryTest, WithoutAStateDatabaseTheCheckpointIsEnough) {
  for (const char* end : {"", "-wal", "-shm"}) fs::remove(absl::StrCat(run_.state_dir, "/", kStateDatabaseFile, end));
  const auto recovered = Go();
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  EXPECT_EQ(recovered->state.run.version, 4u);
  EXPECT_EQ(recovered->params_digest, run_.digests[4]);
  EXPECT_FALSE(recovered->state.round.has_value());
  EXPECT_TRUE(recovered->payloads.empty());
  EXPECT_TRUE(spool_->List()->empty());
  const auto again = Go();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->state.run.version, 4u);
}

TEST_F(RecoveryTest, APayloadThatNobodyWasToldOfGoes) {
  Start();
  std::vector<std::string> payloads;
  run_.Push("b", 2, 5, spool_.get(), &payloads);
  ASSERT_EQ(spool_->List()->size(), 8u);
  ASSERT_TRUE(Go().ok());
  EXPECT_EQ(spool_->List()->size(), 7u);
  EXPECT_TRUE(spool_->Read({{"a", 1}, 5, 0}).ok());
}

TEST_F(RecoveryTest, AMissingDeltaOfALaterRoundIsNamed) {
  fs::remove(run_.state_dir + "/spool/0000000004/b#2-0");
  const std::string error = Error();
  EXPECT_THAT(error, HasSubstr("DATA_LOSS: the delta of b#2 for round 4 is missing"));
  EXPECT_THAT(error, HasSubstr("--resume=PATH"));
}

TEST_F(RecoveryTest, ATornDeltaOfTheOpenRoundIsNamed) {
  fs::resize_file(run_.state_dir + "/spool/0000000005/a#1-0", 20);
  EXPECT_THAT(Error(), HasSubstr("the delta of a#1 for round 5 is damaged"));
}

TEST_F(RecoveryTest, AnotherResultThanTheRecordedOneIsNamed) {
  Sql("UPDATE contributions SET weight = 1.0 - weight WHERE round = 4");
  EXPECT_THAT(Error(), HasSubstr("round 4 done again: want parameters of digest"));
}

TEST_F(RecoveryTest, ADatabaseThatEndsBeforeTheCheckpointIsRefused) {
  Sql("UPDATE progress SET version = 3");
  EXPECT_THAT(Error(), HasSubstr("FAILED_PRECONDITION"));
}

TEST_F(RecoveryTest, ADatabaseOfAnotherRunIsRefused) {
  Sql("UPDATE run SET run_id = 'run-0'");
  EXPECT_THAT(Error(), HasSubstr("is of run run-0, the state folder of run run-"));
}

TEST_F(RecoveryTest, AnotherVersionZeroIsRefused) {
  fs::remove_all(run_.state_dir + "/checkpoints");
  Sql("UPDATE run SET initial_digest = 'other'");
  EXPECT_THAT(Error(), HasSubstr("parameters of version 0: want digest other"));
}

TEST_F(RecoveryTest, ANewRunBegins) {
  run_.state_dir = temp_.File("other");
  const auto recovered = Go();
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  EXPECT_TRUE(recovered->new_run);
  CoreState want;
  want.view_digest = run_.digests[0];
  EXPECT_EQ(recovered->state, want);
  EXPECT_EQ(recovered->params_digest, run_.digests[0]);
  const auto again = Go();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->new_run);
}

TEST_F(RecoveryTest, GoesBackToAnOlderCheckpoint) {
  Start();
  const auto back = GoBackTo(Checkpoint(20), tools_);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->state.run.version, 2u);
  EXPECT_EQ(back->params_digest, run_.digests[2]);
  EXPECT_TRUE(back->state.members.empty());
  EXPECT_EQ(back->state.ledger.leased, 200u) << "of the two rounds that stay";
  EXPECT_EQ(back->state.ledger.applied, 180u);
  EXPECT_TRUE(fs::exists(run_.state_dir + "/checkpoints/gone-back-step-0000000040"));
  EXPECT_TRUE(spool_->List()->empty());
  const auto again = Go();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->state.run.version, 2u);
  EXPECT_EQ(again->params_digest, run_.digests[2]);
}

TEST_F(RecoveryTest, GoingBackToWhatIsNoCheckpointChangesNothing) {
  Start();
  EXPECT_FALSE(GoBackTo(run_.state_dir + "/checkpoints/step-7", tools_).ok());
  EXPECT_EQ(Go()->state.run.version, 5u);
}

class LossyRecoveryTest : public RecoveryTest {
 protected:
  LossyRecoveryTest() : RecoveryTest({.broadcast = {static_cast<std::uint8_t>(Codec::kRms4), 1.5, 1}}) {
    lossy_ = true;
  }

  std::string BytesOf(const EncodedPayload& payload) {
    return absl::StrJoin(payload.Pieces(0, payload.payload_bytes()), "");
  }
};

TEST_F(LossyRecoveryTest, TheViewComesBackAndSoDoTheBroadcastsThatAreDoneAgain) {
  const auto recovered = Go();
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  EXPECT_EQ(recovered->params_digest, run_.digests[5]);
  EXPECT_EQ(recovered->state.view_digest, run_.view_digests[5]);
  EXPECT_NE(run_.view_digests[5], run_.digests[5]);
  EXPECT_EQ(parameters_.ViewDigest(), run_.view_digests[5]);
  ASSERT_EQ(recovered->broadcasts.size(), 1u) << "the newest checkpoint is of version 4";
  EXPECT_EQ(recovered->broadcasts[0]->header().version, 5u);
  EXPECT_EQ(BytesOf(*recovered->broadcasts[0]), BytesOf(*run_.payloads_sent[4]));
  std::vector<float> block(BlockSize(run_.layout.value_count(), 0));
  EXPECT_EQ(parameters_.view()->Read(0, block), 5u);
}

TEST_F(LossyRecoveryTest, NoMoreBroadcastsComeBackThanAreKept) {
  Damage(Checkpoint(40) + "/outer.safetensors");
  Start();
  tools_.broadcasts_kept = 2;
  const auto recovered = Recover(tools_, StoredRun::StartAnew);
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  EXPECT_EQ(recovered->checkpoint, Checkpoint(20));
  EXPECT_EQ(recovered->state.view_digest, run_.view_digests[5]);
  ASSERT_EQ(recovered->broadcasts.size(), 2u);
  EXPECT_EQ(recovered->broadcasts[0]->header().version, 4u);
}

TEST_F(LossyRecoveryTest, AnotherViewThanTheRecordedOneIsNamed) {
  Sql("UPDATE rounds SET view_digest = 'other' WHERE round = 4");
  EXPECT_THAT(Error(), HasSubstr("round 4 done again: want a view of digest other"));
}

TEST_F(LossyRecoveryTest, LosslessBroadcastsAreRefusedInTheMiddle) {
  lossy_ = false;
  EXPECT_THAT(Error(), HasSubstr("FAILED_PRECONDITION: codec.broadcast: lossless as configured"));
}

TEST_F(LossyRecoveryTest, GoingBackMayGoOnWithoutAView) {
  lossy_ = false;
  Start();
  const auto back = GoBackTo(Checkpoint(20), tools_);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->state.view_digest, run_.digests[2]);
  EXPECT_EQ(parameters_.view(), nullptr);
}

TEST_F(RecoveryTest, LossyBroadcastsAreRefusedInTheMiddleAndTakenWhenItGoesBack) {
  lossy_ = true;
  EXPECT_THAT(Error(), HasSubstr("FAILED_PRECONDITION: codec.broadcast: lossy as configured"));
  Start();
  const auto back = GoBackTo(Checkpoint(20), tools_);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->state.view_digest, run_.digests[2]);
  ASSERT_NE(parameters_.view(), nullptr);
  EXPECT_EQ(parameters_.ViewDigest(), run_.digests[2]);
}

TEST_F(RecoveryTest, ANewRunMayHaveLossyBroadcasts) {
  run_.state_dir = temp_.File("other");
  lossy_ = true;
  const auto recovered = Go();
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  EXPECT_EQ(recovered->state.view_digest, run_.digests[0]);
  EXPECT_EQ(parameters_.ViewDigest(), run_.digests[0]);
  EXPECT_TRUE(recovered->broadcasts.empty());
}

}  // namespace
}  // namespace autoloco::server
