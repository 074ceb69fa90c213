#include "server/storage/state_database.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/crash_point.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace autoloco::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunRecord Progress(Version version) {
  RunRecord record;
  record.progress.version = version;
  record.progress.inner_steps_done = version * 500;
  record.progress.next_incarnation = 1'000'002;
  record.progress.next_sample = 12345678901234 + version;
  record.progress.next_sample_by_worker = {{"dc1", 77}, {"dc2", version}};
  record.progress.interval.average = 0.1 + static_cast<double>(version);
  record.progress.interval.losses = {5.5, 4.25};
  record.participants = {"dc1", "dc2"};
  record.data = DataIdentity{1000, 0xFEDCBA9876543210};
  return record;
}

RoundEntry Entry(Incarnation incarnation, bool delivered) {
  RoundEntry entry;
  entry.incarnation = incarnation;
  entry.assignment = {7, 500, 3500, 100, 8000, 0, 2};
  entry.delivered = delivered;
  if (!delivered) return entry;
  entry.delivered_by = incarnation;
  entry.payload_digest = "00ff";
  entry.payload_bytes = 4096;
  entry.report = {500, 1000, 0.25, 3.5, std::nan(""), 3.25, 1.5, 0.125};
  entry.evaluation = EvaluationPart{7, 12.5, 100};
  return entry;
}

RoundOpenedRecord Opened(Round number, std::uint64_t attempt) {
  RoundOpenedRecord record;
  record.round.number = number;
  record.round.attempt = attempt;
  record.round.inner_steps = 500;
  record.round.cursors_before.next_sample = 100;
  record.round.cursors_before.next_sample_by_worker = {{"dc2", 3}};
  record.round.record.round = number;
  record.round.record.reason = Reason::kAgreement;
  record.round.record.learning_rate = 0.1;
  record.round.entries = {{"dc1", Entry(1, false)}, {"dc2", Entry(2, false)}};
  return record;
}

PushRecord Pushed(Round round, const std::string& worker, const std::string& digest, PushOutcome outcome) {
  PushRecord record;
  record.key = {{worker, 1}, round, 0};
  record.push = {digest, outcome, outcome == PushOutcome::kAccepted ? "" : "why"};
  record.payload_bytes = 4096;
  return record;
}

StartCommit Decision(Round round) {
  StartCommit decision;
  decision.round = round;
  decision.step.factors = {1.5, 0.5, 0.25, 1.0 / 3, false};
  decision.step.ratio = 0.1;
  decision.method = {CombineKind::kTrimmedMean, 0.125, {5, 1.0 / 3, 7}};
  decision.contributions = {{{{"dc1", 1}, round, 0}, 0.75}, {{{"dc2", 1}, round, 0}, 0.25}};
  return decision;
}

RoundCommittedRecord Committed(Round round) {
  RoundCommittedRecord record;
  record.round = round;
  record.stats.mean_delta_norm = 0.3;
  record.stats.delta_norm_by_worker = {{"dc1", 0.1}, {"dc2", std::numeric_limits<double>::infinity()}};
  record.record.params_digest = absl::StrCat("digest ", round + 1);
  record.record.view_digest = absl::StrCat("view ", round + 1);
  record.record.round = round;
  record.record.loss_mean = 3.5;
  record.record.statistics.agreement = 1.0 / 7;
  return record;
}

LeaseRecord Leased(Round round, std::uint64_t attempt, const std::string& worker, LeaseFate fate) {
  return {{round, attempt, {worker, 1}}, {1000, fate == LeaseFate::kApplied ? 900u : 0u, fate}};
}

// Every kind of record, in an order in which they could come.
std::vector<Record> AllKinds() {
  RoundDecidedRecord decided{Decision(7), Committed(7).record};
  decided.record.params_digest.clear();  // nobody knows them before the commit
  decided.record.view_digest.clear();
  EvaluationRecord evaluation;
  evaluation.point = {7, 3500, 3.75, 200};
  EvaluationRecord again = evaluation;
  again.point.loss = 3.5;
  RoundOpenedRecord finishing = Opened(8, 1);
  finishing.round.finishing = true;
  return {Progress(7),
          MemberRecord{"dc1", {1, true, true, Reason::kJoined, "", 0}},
          MemberRecord{"dc2", {2, true, false, Reason::kReconnected, "text \"quoted\"", 1234567, 0.125, 3.5}},
          MemberRecord{"dc3", {3, false, false, Reason::kLeaseExpired, "", 0}},
          Opened(7, 0),
          Leased(7, 0, "dc1", LeaseFate::kOutstanding),
          Leased(7, 0, "dc2", LeaseFate::kOutstanding),
          EntryRecord{7, "dc1", Entry(1, true)},
          Pushed(7, "dc1", "00ff", PushOutcome::kAccepted),
          Pushed(6, "dc2", "abcd", PushOutcome::kLate),
          RoundAbortedRecord{7, 5, "another attempt"},
          RoundAbortedRecord{7, 0, "everyone left"},
          Leased(7, 0, "dc1", LeaseFate::kLost),
          Leased(7, 0, "dc2", LeaseFate::kLost),
          EntryRecord{7, "dc1", Entry(1, true)},
          Opened(7, 1),
          evaluation,
          again,
          Leased(7, 1, "dc1", LeaseFate::kOutstanding),
          Pushed(7, "dc1", "new digest", PushOutcome::kAccepted),
          Pushed(7, "dc2", "of dc2", PushOutcome::kAccepted),
          EntryRecord{7, "dc2", Entry(9, true)},
          decided,
          Committed(7),
          Leased(7, 1, "dc1", LeaseFate::kApplied),
          LedgerRecord{{3000, 900, 0, 0, 2000, 100}},
          Progress(8),
          CheckpointRecord{8},
          MemberForgottenRecord{"dc3"},
          finishing,
          RunEvaluatedRecord{8}};
}

class StateDatabaseTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open(Database::Mode mode = Database::Mode::kReadWrite) {
    database_.reset();
    auto database = StateDatabase::Open(path_, mode);
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
  }
  CoreState Load() {
    auto state = database_->Load();
    EXPECT_TRUE(state.ok()) << state.status();
    return state.ok() ? *std::move(state) : CoreState();
  }
  void StoreOk(std::vector<Record> records) {
    const absl::Status status = database_->Store(records);
    ASSERT_TRUE(status.ok()) << status;
  }
  void SetUpRounds(Round from, Round to) {
    for (Round round = from; round < to; ++round) {
      StoreOk({Opened(round, 0), Pushed(round, "dc1", absl::StrCat("a", round), PushOutcome::kAccepted),
               Pushed(round, "dc2", absl::StrCat("b", round), PushOutcome::kAccepted),
               RoundDecidedRecord{Decision(round), {}}, Committed(round), Progress(round + 1)});
    }
  }

  const TempFolder temp_;
  const std::string path_ = temp_.File(kStateDatabaseFile);
  std::unique_ptr<StateDatabase> database_;
};

TEST_F(StateDatabaseTest, EveryPrefixComesBackAsItsFold) {
  EXPECT_EQ(Load(), CoreState());
  CoreState folded;
  for (const Record& record : AllKinds()) {
    SCOPED_TRACE(RecordName(record));
    StoreOk({record});
    Apply(record, &folded);
    Open();
    EXPECT_EQ(Load(), folded);
    StoreOk({record});  // twice makes no difference
    EXPECT_EQ(Load(), folded);
  }
  EXPECT_TRUE(folded.evaluated);
}

TEST_F(StateDatabaseTest, ADecidedRoundComesBackDecided) {
  StoreOk({Progress(7), Opened(7, 0), RoundDecidedRecord{Decision(7), {}}});
  Open();
  const CoreState state = Load();
  ASSERT_TRUE(state.round.has_value());
  EXPECT_EQ(state.round->decision, Decision(7));
}

TEST_F(StateDatabaseTest, ThePushesThatAreAnsweredFromAreTheRegisters) {
  CoreState folded;
  for (Round round = 0; round < 40; ++round) {
    const std::vector<Record> records = {Pushed(round, "dc1", "x", PushOutcome::kAccepted),
                                         Pushed(round / 2, "dc2", "old", PushOutcome::kStale), Committed(round)};
    StoreOk(records);
    for (const Record& record : records) Apply(record, &folded);
    ASSERT_EQ(Load(), folded) << round;
  }
  EXPECT_EQ(database_->AcceptedDigest({{"dc1", 1}, 3, 0}).value(), "x");  // but nothing is lost
  EXPECT_EQ(database_->AcceptedDigest({{"dc2", 1}, 3, 0}).value(), "");
}

TEST_F(StateDatabaseTest, AllRecordsOfABatchOrNone) {
  for (const char* point : {"record_before_round_committed", "record_after_round_committed"}) {
    const CoreState before = Load();
    database_.reset();
    const pid_t child = fork();
    if (child == 0) {
      Open();
      if (!ArmCrashPoint(point).ok()) _exit(1);
      const std::vector<Record> batch = {Progress(1), Committed(0), CheckpointRecord{1}};
      _exit(database_->Store(batch).ok() ? 2 : 3);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << point << " " << WEXITSTATUS(status);
    Open();
    if (std::string(point) == "record_before_round_committed") {
      EXPECT_EQ(Load(), before);
    } else {
      EXPECT_EQ(Load().run.version, 1u);
      EXPECT_EQ(Load().checkpoint, 1u);
      EXPECT_EQ(Load().run.history.size(), 1u);
    }
  }
}

TEST_F(StateDatabaseTest, TellsWhatToReplay) {
  SetUpRounds(0, 3);
  StoreOk({Opened(3, 0), Pushed(3, "dc1", "a3", PushOutcome::kAccepted), RoundDecidedRecord{Decision(3), {}}});
  const auto rounds = database_->DecidedRounds(1);
  ASSERT_TRUE(rounds.ok()) << rounds.status();
  ASSERT_EQ(rounds->size(), 3u);
  EXPECT_EQ((*rounds)[0].decision, Decision(1));
  EXPECT_EQ((*rounds)[0].digests, (VersionDigests{"digest 2", "view 2"}));
  EXPECT_THAT((*rounds)[0].payload_digests, ElementsAre("a1", "b1"));
  EXPECT_EQ((*rounds)[2].digests, VersionDigests());
  EXPECT_THAT((*rounds)[2].payload_digests, ElementsAre("a3", ""));
}

TEST_F(StateDatabaseTest, AGapInTheLogIsNamed) {
  SetUpRounds(0, 2);
  SetUpRounds(3, 4);
  const absl::Status status = database_->DecidedRounds(0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("want round 2 next, got round 3"));
}

TEST_F(StateDatabaseTest, BeginsFromACheckpointAlone) {
  EXPECT_FALSE(database_->Identity().value().has_value());
  CoreSnapshot snapshot;
  static_cast<RunProgress&>(snapshot) = Progress(2).progress;
  snapshot.history = {Committed(0).record, Committed(1).record};
  snapshot.evaluations = {{0, 0, 5, 100}, {2, 1000, 4, 100}};
  ASSERT_TRUE(database_->Begin({"run-1", "first"}, StateOf(snapshot)).ok());
  Open();
  EXPECT_EQ(Load(), StateOf(snapshot));
  EXPECT_EQ(database_->Identity().value()->run_id, "run-1");
  EXPECT_EQ(database_->Identity().value()->initial_digest, "first");
}

TEST_F(StateDatabaseTest, GoesBackToACheckpointAndKeepsWhatIsOlder) {
  ASSERT_TRUE(database_->Begin({"run-1", "first"}, CoreState()).ok());
  SetUpRounds(0, 5);
  StoreOk({Leased(1, 0, "dc1", LeaseFate::kApplied), Leased(4, 0, "dc1", LeaseFate::kApplied),
           MemberRecord{"dc1", {1, true, true, Reason::kJoined, "", 0}}, CheckpointRecord{2}, CheckpointRecord{4},
           LedgerRecord{{2000, 1800, 0, 0, 0, 200}}, Opened(5, 0)});
  CoreSnapshot snapshot;
  static_cast<RunProgress&>(snapshot) = Progress(2).progress;
  snapshot.history = {Committed(0).record, Committed(1).record};
  ASSERT_TRUE(database_->Begin({"run-1", "first"}, StateOf(snapshot)).ok());
  CoreState want = StateOf(snapshot);
  want.ledger = {1000, 900, 0, 0, 0, 100};
  CoreState got = Load();
  EXPECT_EQ(got.pushes.all().size(), 4u);  // of rounds 0 and 1
  got.pushes = PushRegister();
  EXPECT_EQ(got, want);
  const auto rounds = database_->DecidedRounds(0);
  ASSERT_EQ(rounds->size(), 2u);
  EXPECT_EQ((*rounds)[1].digests.params, "digest 2");
  EXPECT_EQ((*database_->Digests())[2], (VersionDigests{"digest 2", "view 2"}));
}

TEST_F(StateDatabaseTest, SumsTheLeases) {
  StoreOk({Leased(1, 0, "a", LeaseFate::kOutstanding), Leased(1, 0, "b", LeaseFate::kApplied),
           Leased(2, 0, "a", LeaseFate::kLost), Leased(2, 1, "a", LeaseFate::kApplied)});
  EXPECT_EQ(database_->SumLeases().value(), (LedgerTotals{4000, 1800, 0, 0, 1000, 200}));
}

TEST_F(StateDatabaseTest, NamesTheTableThatCannotBeRead) {
  SetUpRounds(0, 1);
  database_.reset();
  auto raw = Database::Open(path_, Database::Mode::kReadWrite, {3, ""});
  ASSERT_TRUE(raw.ok()) << raw.status();
  ASSERT_TRUE(raw->Execute("UPDATE rounds SET record = '{\"round\": 1}'").ok());
  Open();
  const absl::Status status = database_->Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
  EXPECT_THAT(std::string(status.message()), HasSubstr("table rounds: record: no "));
}

TEST_F(StateDatabaseTest, IsReadBesideTheServer) {
  SetUpRounds(0, 2);
  auto reader = StateDatabase::Open(path_, Database::Mode::kReadOnly);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->Load().value(), Load());
  EXPECT_FALSE((*reader)->Store(std::vector<Record>{Progress(1)}).ok());
}

}  // namespace
}  // namespace autoloco::server
