#include "server/storage/state_database.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/crash_point.h"
#include "common/base/status_macros.h"
#include "server/storage/state_rows.h"
#include "server/storage/table.h"

namespace autoloco::server {
namespace {

constexpr std::uint64_t kSchemaVersion = 3;

const std::string& SchemaSql() {
  static const std::string& sql = *new std::string(absl::StrCat(
      CreateSql<RunRow>("run", "id"), CreateSql<ProgressRow>("progress", "id"), CreateSql<LedgerRow>("ledger", "id"),
      CreateSql<CheckpointRow>("checkpoints", "version"), CreateSql<EndedRow>("ended", "version"),
      CreateSql<MemberRecord>("workers", "name"), CreateSql<RoundRow>("rounds", "round, attempt"),
      CreateSql<AssignmentRow>("assignments", "round, attempt, worker"),
      CreateSql<ContributionRow>("contributions", "round, position"),
      CreateSql<PushRow>("pushes", "round, worker, incarnation, fragment"),
      CreateSql<LeaseRecord>("leases", "round, attempt, worker, incarnation"),
      CreateSql<EvaluationPoint>("evaluations", "version"),
      "CREATE INDEX live_pushes ON pushes (round) WHERE live;\n"
      "CREATE INDEX outstanding_leases ON leases (round) WHERE fate = 'outstanding';\n"
      "CREATE INDEX unfinished_rounds ON rounds (round) WHERE state IN ('open', 'decided');\n"));
  return sql;
}

constexpr absl::string_view kUnfinished = "state IN ('open', 'decided')";

}  // namespace

absl::StatusOr<std::unique_ptr<StateDatabase>> StateDatabase::Open(const std::string& path, Database::Mode mode) {
  AUTOLOCO_ASSIGN_OR_RETURN(Database database, Database::Open(path, mode, {kSchemaVersion, SchemaSql().c_str()}));
  if (mode == Database::Mode::kReadOnly) AUTOLOCO_RETURN_IF_ERROR(database.Execute("BEGIN"));
  return std::unique_ptr<StateDatabase>(new StateDatabase(std::move(database)));
}

absl::StatusOr<std::optional<RunIdentity>> StateDatabase::Identity() {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<RunRow> rows, SelectRows<RunRow>(&database_, "run"));
  if (rows.empty()) return std::nullopt;
  return RunIdentity{rows[0].run_id, rows[0].initial_digest};
}

// ---------------------------------------------------------------------------------------------------- writing

absl::Status StateDatabase::Store(std::span<const Record> records) {
  AUTOLOCO_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(&database_));
  AUTOLOCO_RETURN_IF_ERROR(StoreAll(records));
  for (const Record& record : records) CrashPoint("record_before", RecordName(record));
  AUTOLOCO_RETURN_IF_ERROR(transaction.Commit());
  for (const Record& record : records) CrashPoint("record_after", RecordName(record));
  return absl::OkStatus();
}

absl::Status StateDatabase::StoreAll(std::span<const Record> records) {
  for (const Record& record : records) {
    AUTOLOCO_RETURN_IF_ERROR(std::visit([this](const auto& one) { return StoreOne(one); }, record));
  }
  return absl::OkStatus();
}

absl::Status StateDatabase::Begin(const RunIdentity& identity, const CoreState& state) {
  AUTOLOCO_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(&database_));
  AUTOLOCO_RETURN_IF_ERROR(ForgetFrom(state.run.version));
  RunRow run;
  run.run_id = identity.run_id;
  run.initial_digest = identity.initial_digest;
  AUTOLOCO_RETURN_IF_ERROR(Upsert(&database_, "run", run));
  // What is there of older rounds tells more than the state does: their digests, who took part.
  for (const RoundRecord& record : state.run.history) {
    AUTOLOCO_ASSIGN_OR_RETURN(const std::optional<std::uint64_t> attempt, AttemptAt(record.round));
    if (attempt) continue;
    RoundCommittedRecord committed;
    committed.round = record.round;
    committed.record = record;
    AUTOLOCO_RETURN_IF_ERROR(StoreOne(committed));
  }
  for (const EvaluationPoint& point : state.run.evaluations) {
    AUTOLOCO_RETURN_IF_ERROR(StoreOne(EvaluationRecord{point}));
  }
  if (state.checkpoint) AUTOLOCO_RETURN_IF_ERROR(StoreOne(CheckpointRecord{*state.checkpoint}));
  AUTOLOCO_RETURN_IF_ERROR(StoreOne(RunRecord{state.run, state.participants, state.data}));
  AUTOLOCO_ASSIGN_OR_RETURN(const LedgerTotals totals, SumLeases());
  AUTOLOCO_RETURN_IF_ERROR(StoreOne(LedgerRecord{totals}));
  return transaction.Commit();
}

absl::Status StateDatabase::ForgetFrom(Version version) {
  for (const char* table : {"rounds", "assignments", "contributions", "pushes", "leases"}) {
    AUTOLOCO_RETURN_IF_ERROR(RunSql(&database_, absl::StrCat("DELETE FROM ", table, " WHERE round >= ?"), version));
  }
  for (const char* table : {"checkpoints", "evaluations"}) {
    AUTOLOCO_RETURN_IF_ERROR(RunSql(&database_, absl::StrCat("DELETE FROM ", table, " WHERE version > ?"), version));
  }
  AUTOLOCO_RETURN_IF_ERROR(RunSql(&database_, "DELETE FROM ended"));
  return RunSql(&database_, "DELETE FROM workers");
}

absl::StatusOr<std::optional<std::uint64_t>> StateDatabase::AttemptAt(Round round) {
  AUTOLOCO_ASSIGN_OR_RETURN(
      Statement select,
      database_.Prepare("SELECT attempt FROM rounds WHERE round = ? AND state IN ('open', 'decided', 'committed')"));
  select.Bind(round);
  AUTOLOCO_ASSIGN_OR_RETURN(const bool found, select.Step());
  if (!found) return std::nullopt;
  std::uint64_t attempt = 0;
  select.Read(&attempt);
  AUTOLOCO_RETURN_IF_ERROR(select.status());
  return attempt;
}

absl::Status StateDatabase::StoreOne(const RunRecord& record) {
  ProgressRow row;
  row.record = record;
  return Upsert(&database_, "progress", row);
}

absl::Status StateDatabase::StoreOne(const MemberRecord& record) { return Upsert(&database_, "workers", record); }

absl::Status StateDatabase::StoreOne(const MemberForgottenRecord& record) {
  return RunSql(&database_, "DELETE FROM workers WHERE name = ?", record.name);
}

absl::Status StateDatabase::StoreOne(const RoundOpenedRecord& record) {
  const RoundState& round = record.round;
  // One round is open at a time: one that was left open without a word is over.
  AUTOLOCO_RETURN_IF_ERROR(RunSql(&database_,
                                  absl::StrCat("UPDATE rounds SET state = 'aborted', reason = 'superseded' WHERE ",
                                               kUnfinished, " AND NOT (round = ? AND attempt = ?)"),
                                  round.number, round.attempt));
  RoundRow row;
  row.round = round;
  AUTOLOCO_RETURN_IF_ERROR(Upsert(&database_, "rounds", row));
  AUTOLOCO_RETURN_IF_ERROR(
      RunSql(&database_, "DELETE FROM assignments WHERE round = ? AND attempt = ?", round.number, round.attempt));
  for (const auto& [worker, entry] : round.entries) {
    AUTOLOCO_RETURN_IF_ERROR(
        Upsert(&database_, "assignments", AssignmentRow{round.attempt, {round.number, worker, entry}}));
  }
  return absl::OkStatus();
}

absl::Status StateDatabase::StoreOne(const EntryRecord& record) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::optional<std::uint64_t> attempt, AttemptAt(record.round));
  if (!attempt) return absl::OkStatus();
  return Upsert(&database_, "assignments", AssignmentRow{*attempt, record});
}

absl::Status StateDatabase::StoreOne(const PushRecord& record) {
  return Upsert(&database_, "pushes", PushRow{record, true});
}

absl::Status StateDatabase::StoreOne(const RoundDecidedRecord& record) {
  const Round round = record.decision.round;
  AUTOLOCO_RETURN_IF_ERROR(RunSql(
      &database_,
      absl::StrCat("UPDATE rounds SET state = 'decided', step = ?, method = ?, record = ? WHERE round = ? AND ",
                   kUnfinished),
      ToJson(record.decision.step).dump(), ToJson(record.decision.method).dump(), ToJson(record.record).dump(), round));
  AUTOLOCO_RETURN_IF_ERROR(RunSql(&database_, "DELETE FROM contributions WHERE round = ?", round));
  std::uint64_t position = 0;
  for (const StartCommit::Contribution& contribution : record.decision.contributions) {
    AUTOLOCO_RETURN_IF_ERROR(Upsert(&database_, "contributions", ContributionRow{round, position++, contribution}));
  }
  return absl::OkStatus();
}

absl::Status StateDatabase::StoreOne(const RoundCommittedRecord& record) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::optional<std::uint64_t> attempt, AttemptAt(record.round));
  if (!attempt) {
    RoundRow row;  // of a run that went on from a checkpoint alone
    row.round.number = record.round;
    row.round.inner_steps = record.record.inner_steps;
    AUTOLOCO_RETURN_IF_ERROR(Upsert(&database_, "rounds", row));
  }
  AUTOLOCO_RETURN_IF_ERROR(RunSql(&database_,
                                  "UPDATE rounds SET state = 'committed', params_digest = ?, view_digest = ?, "
                                  "stats = ?, record = ? WHERE round = ? AND attempt = ?",
                                  record.record.params_digest, record.record.view_digest, ToJson(record.stats).dump(),
                                  ToJson(record.record).dump(), record.round, attempt.value_or(0)));
  if (record.round < PushRegister::kRoundsKept) return absl::OkStatus();
  return RunSql(&database_, "UPDATE pushes SET live = 0 WHERE live AND round <= ?",
                record.round - PushRegister::kRoundsKept);
}

absl::Status StateDatabase::StoreOne(const RoundAbortedRecord& record) {
  AUTOLOCO_ASSIGN_OR_RETURN(
      const std::vector<RoundRow> rows,
      SelectRows<RoundRow>(&database_, absl::StrCat("rounds WHERE round = ? AND attempt = ? AND ", kUnfinished),
                           record.round, record.attempt));
  if (rows.empty()) return absl::OkStatus();
  AUTOLOCO_RETURN_IF_ERROR(RunSql(&database_,
                                  "UPDATE rounds SET state = 'aborted', reason = ? WHERE round = ? AND attempt = ?",
                                  record.reason, record.round, record.attempt));
  return RunSql(
      &database_,
      "UPDATE pushes SET live = 0, outcome = CASE outcome WHEN 'accepted' THEN 'round_aborted' ELSE outcome END "
      "WHERE live AND round = ?",
      record.round);
}

absl::Status StateDatabase::StoreOne(const RunEvaluatedRecord& record) {
  AUTOLOCO_RETURN_IF_ERROR(RunSql(&database_, absl::StrCat("UPDATE rounds SET state = 'ended' WHERE ", kUnfinished)));
  return Upsert(&database_, "ended", EndedRow{record.version});
}

absl::Status StateDatabase::StoreOne(const EvaluationRecord& record) {
  return Upsert(&database_, "evaluations", record.point);
}

absl::Status StateDatabase::StoreOne(const CheckpointRecord& record) {
  return Upsert(&database_, "checkpoints", CheckpointRow{record.version});
}

absl::Status StateDatabase::StoreOne(const LeaseRecord& record) { return Upsert(&database_, "leases", record); }

absl::Status StateDatabase::StoreOne(const LedgerRecord& record) {
  LedgerRow row;
  row.totals = record.totals;
  return Upsert(&database_, "ledger", row);
}

// ---------------------------------------------------------------------------------------------------- reading

absl::StatusOr<CoreState> StateDatabase::Load() {
  CoreState state;
  AUTOLOCO_RETURN_IF_ERROR(LoadRun(&state));
  AUTOLOCO_RETURN_IF_ERROR(LoadHistory(&state));
  AUTOLOCO_RETURN_IF_ERROR(LoadRound(&state));
  AUTOLOCO_RETURN_IF_ERROR(LoadLedger(&state));
  return state;
}

absl::Status StateDatabase::LoadRun(CoreState* state) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<ProgressRow> progress, SelectRows<ProgressRow>(&database_, "progress"));
  for (const ProgressRow& row : progress) Apply(row.record, state);
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<MemberRecord> workers, SelectRows<MemberRecord>(&database_, "workers"));
  for (const MemberRecord& row : workers) Apply(row, state);
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<CheckpointRow> checkpoints,
                            SelectRows<CheckpointRow>(&database_, "checkpoints ORDER BY version DESC LIMIT 1"));
  for (const CheckpointRow& row : checkpoints) Apply(CheckpointRecord{row.version}, state);
  return absl::OkStatus();
}

absl::Status StateDatabase::LoadHistory(CoreState* state) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<RoundRow> rounds,
                            SelectRows<RoundRow>(&database_, "rounds WHERE state = 'committed' ORDER BY round"));
  for (const RoundRow& row : rounds) {
    Apply(RoundCommittedRecord{row.round.number, row.stats, row.round.record}, state);
  }
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<EvaluationPoint> evaluations,
                            SelectRows<EvaluationPoint>(&database_, "evaluations ORDER BY version"));
  for (const EvaluationPoint& point : evaluations) Apply(EvaluationRecord{point}, state);
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<PushRow> pushes, SelectRows<PushRow>(&database_, "pushes WHERE live"));
  for (const PushRow& row : pushes) Apply(row.record, state);
  return absl::OkStatus();
}

absl::Status StateDatabase::LoadRound(CoreState* state) {
  AUTOLOCO_ASSIGN_OR_RETURN(
      const std::vector<RoundRow> rounds,
      SelectRows<RoundRow>(&database_, absl::StrCat("rounds WHERE ", kUnfinished, " ORDER BY round DESC LIMIT 1")));
  for (const RoundRow& row : rounds) {
    RoundState round = row.round;
    AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<AssignmentRow> assignments,
                              SelectRows<AssignmentRow>(&database_, "assignments WHERE round = ? AND attempt = ?",
                                                        round.number, round.attempt));
    for (const AssignmentRow& assignment : assignments) {
      round.entries[assignment.record.worker] = assignment.record.entry;
    }
    if (row.state == "decided") {
      AUTOLOCO_ASSIGN_OR_RETURN(std::vector<StartCommit::Contribution> contributions, Contributions(round.number));
      round.decision = StartCommit{round.number, row.step, row.method, std::move(contributions)};
    }
    Apply(RoundOpenedRecord{std::move(round)}, state);
  }
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<EndedRow> ended, SelectRows<EndedRow>(&database_, "ended"));
  if (!ended.empty()) Apply(RunEvaluatedRecord{ended.back().version}, state);
  return absl::OkStatus();
}

absl::Status StateDatabase::LoadLedger(CoreState* state) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<LedgerRow> ledger, SelectRows<LedgerRow>(&database_, "ledger"));
  for (const LedgerRow& row : ledger) Apply(LedgerRecord{row.totals}, state);
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<LeaseRecord> leases,
                            SelectRows<LeaseRecord>(&database_, "leases WHERE fate = 'outstanding'"));
  for (const LeaseRecord& row : leases) Apply(row, state);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<StartCommit::Contribution>> StateDatabase::Contributions(Round round) {
  AUTOLOCO_ASSIGN_OR_RETURN(
      const std::vector<ContributionRow> rows,
      SelectRows<ContributionRow>(&database_, "contributions WHERE round = ? ORDER BY position", round));
  std::vector<StartCommit::Contribution> contributions;
  for (const ContributionRow& row : rows) contributions.push_back(row.contribution);
  return contributions;
}

absl::StatusOr<std::vector<DecidedRound>> StateDatabase::DecidedRounds(Round from) {
  AUTOLOCO_ASSIGN_OR_RETURN(
      const std::vector<RoundRow> rows,
      SelectRows<RoundRow>(&database_, "rounds WHERE round >= ? AND state IN ('committed', 'decided') ORDER BY round",
                           from));
  std::vector<DecidedRound> rounds;
  for (const RoundRow& row : rows) {
    const Round round = row.round.number;
    if (round != from + rounds.size()) {
      return absl::DataLossError(
          absl::StrCat("state database ", path(), ": want round ", from + rounds.size(), " next, got round ", round));
    }
    AUTOLOCO_ASSIGN_OR_RETURN(std::vector<StartCommit::Contribution> contributions, Contributions(round));
    DecidedRound decided;
    decided.digests = {row.round.record.params_digest, row.round.record.view_digest};
    for (const StartCommit::Contribution& contribution : contributions) {
      AUTOLOCO_ASSIGN_OR_RETURN(std::string digest, AcceptedDigest(contribution.push));
      decided.payload_digests.push_back(std::move(digest));
    }
    decided.decision = StartCommit{round, row.step, row.method, std::move(contributions)};
    rounds.push_back(std::move(decided));
  }
  return rounds;
}

absl::StatusOr<std::string> StateDatabase::AcceptedDigest(const PushKey& key) {
  AUTOLOCO_ASSIGN_OR_RETURN(
      const std::vector<PushRow> rows,
      SelectRows<PushRow>(&database_, "pushes WHERE round = ? AND worker = ? AND incarnation = ? AND fragment = ?",
                          key.round, key.worker.name, key.worker.incarnation, key.fragment));
  if (rows.empty() || rows[0].record.push.outcome != PushOutcome::kAccepted) return std::string();
  return rows[0].record.push.payload_digest;
}

absl::StatusOr<std::map<Version, VersionDigests>> StateDatabase::Digests() {
  AUTOLOCO_ASSIGN_OR_RETURN(
      Statement select,
      database_.Prepare("SELECT round, params_digest, view_digest FROM rounds WHERE state = 'committed'"));
  std::map<Version, VersionDigests> digests;
  while (true) {
    AUTOLOCO_ASSIGN_OR_RETURN(const bool more, select.Step());
    if (!more) return digests;
    Round round = 0;
    VersionDigests found;
    select.Read(&round);
    select.Read(&found.params);
    select.Read(&found.view);
    AUTOLOCO_RETURN_IF_ERROR(select.status());
    if (!found.params.empty()) digests[round + 1] = std::move(found);
  }
}

absl::StatusOr<LedgerTotals> StateDatabase::SumLeases() {
  AUTOLOCO_ASSIGN_OR_RETURN(
      Statement select,
      database_.Prepare("SELECT fate, sum(leased), sum(trained), sum(leased - trained) FROM leases GROUP BY fate"));
  LedgerTotals totals;
  while (true) {
    AUTOLOCO_ASSIGN_OR_RETURN(const bool more, select.Step());
    if (!more) return totals;
    std::string fate;
    std::uint64_t leased = 0;
    std::uint64_t trained = 0;
    std::uint64_t unused = 0;
    select.Read(&fate);
    select.Read(&leased);
    select.Read(&trained);
    select.Read(&unused);
    AUTOLOCO_RETURN_IF_ERROR(select.status());
    totals.leased += leased;
    if (fate == LeaseFateName(LeaseFate::kOutstanding)) continue;
    if (fate == LeaseFateName(LeaseFate::kLost)) {
      totals.lost += leased;
      continue;
    }
    totals.unused += unused;
    if (fate == LeaseFateName(LeaseFate::kApplied)) totals.applied += trained;
    if (fate == LeaseFateName(LeaseFate::kLate)) totals.late += trained;
    if (fate == LeaseFateName(LeaseFate::kRejected)) totals.rejected += trained;
  }
}

}  // namespace autoloco::server
