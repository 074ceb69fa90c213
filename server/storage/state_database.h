// What the core must remember, in SQLite: state.sqlite of the state folder. Records go in as the core emits them, each
// into its table; a restarted server reads the same state back. Rounds, pushes, the ledger and the losses stay for the
// whole run: README.md shows the tables.
#ifndef AUTOLOCO_SERVER_STORAGE_STATE_DATABASE_H_
#define AUTOLOCO_SERVER_STORAGE_STATE_DATABASE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "server/core/core_state.h"
#include "server/core/records.h"
#include "server/storage/database.h"

namespace autoloco::server {

inline constexpr char kStateDatabaseFile[] = "state.sqlite";

// Which run a database is about.
struct RunIdentity {
  std::string run_id;
  std::string initial_digest;  // params_digest of version 0; empty: not known
};

// Of one version: its exact parameters, and what every worker holds as that version.
struct VersionDigests {
  std::string params;
  std::string view;
  bool operator==(const VersionDigests&) const = default;
};

// One committed or decided round, as it must be replayed.
struct DecidedRound {
  StartCommit decision;
  std::vector<std::string> payload_digests;  // of the contributions, in their order
  VersionDigests digests;                    // of version round + 1; empty: not committed yet
};

// Not thread-safe. Status codes as Database.
class StateDatabase {
 public:
  // Opens `path`; with kReadOnly all that is read is of one instant. FAILED_PRECONDITION: of another schema version.
  static absl::StatusOr<std::unique_ptr<StateDatabase>> Open(const std::string& path, Database::Mode mode);

  // Empty: nothing was ever stored here.
  absl::StatusOr<std::optional<RunIdentity>> Identity();
  // The state that the stored records make. DATA_LOSS naming what cannot be read.
  absl::StatusOr<CoreState> Load();
  // The rounds from `from` on, in order, that are committed or decided, without gaps. DATA_LOSS where one is missing.
  absl::StatusOr<std::vector<DecidedRound>> DecidedRounds(Round from);
  // The digest under which the push of `key` was accepted; empty: no such push was.
  absl::StatusOr<std::string> AcceptedDigest(const PushKey& key);
  // Every lease so far, summed.
  absl::StatusOr<LedgerTotals> SumLeases();
  // Versions 1, 2, ... that are known by digest: those of the committed rounds.
  absl::StatusOr<std::map<Version, VersionDigests>> Digests();

  // Begins a run, or lets it go on from `state` alone, such as the one of a checkpoint: what was stored of its version
  // and later is gone, what is older stays. One transaction.
  absl::Status Begin(const RunIdentity& identity, const CoreState& state);
  // All records or none, durable when OK. They may be stored twice.
  absl::Status Store(std::span<const Record> records);

  const std::string& path() const { return database_.path(); }

 private:
  explicit StateDatabase(Database database) : database_(std::move(database)) {}

  absl::Status StoreOne(const RunRecord& record);
  absl::Status StoreOne(const MemberRecord& record);
  absl::Status StoreOne(const MemberForgottenRecord& record);
  absl::Status StoreOne(const RoundOpenedRecord& record);
  absl::Status StoreOne(const EntryRecord& record);
  absl::Status StoreOne(const PushRecord& record);
  absl::Status StoreOne(const RoundDecidedRecord& record);
  absl::Status StoreOne(const RoundCommittedRecord& record);
  absl::Status StoreOne(const RoundAbortedRecord& record);
  absl::Status StoreOne(const RunEvaluatedRecord& record);
  absl::Status StoreOne(const EvaluationRecord& record);
  absl::Status StoreOne(const CheckpointRecord& record);
  absl::Status StoreOne(const LeaseRecord& record);
  absl::Status StoreOne(const LedgerRecord& record);

  absl::Status StoreAll(std::span<const Record> records);
  absl::Status ForgetFrom(Version version);
  // The attempt at `round` that is open, decided or committed; empty: there is none.
  absl::StatusOr<std::optional<std::uint64_t>> AttemptAt(Round round);
  absl::Status LoadRun(CoreState* state);
  absl::Status LoadHistory(CoreState* state);
  absl::Status LoadRound(CoreState* state);
  absl::Status LoadLedger(CoreState* state);
  absl::StatusOr<std::vector<StartCommit::Contribution>> Contributions(Round round);

  Database database_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_STATE_DATABASE_H_
