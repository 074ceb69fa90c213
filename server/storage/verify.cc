#include "server/storage/verify.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "server/storage/checkpoint_folder.h"
#include "server/storage/checkpoint_loader.h"
#include "server/storage/checkpoint_manifest.h"
#include "server/storage/replay.h"
#include "server/storage/spool.h"
#include "server/storage/state_database.h"
#include "server/storage/state_folder.h"

namespace autoloco::server {
namespace {

// A server that runs drops old payloads and checkpoints: then it is looked at again.
constexpr int kLooksMax = 3;

struct StoredVersion {
  std::string path;
  CheckpointManifest manifest;
};

class Verifier {
 public:
  Verifier(const std::string& state_dir, StateDatabase* database, WorkPool* pool)
      : state_dir_(state_dir),
        database_(database),
        pool_(pool),
        spool_(Spool::OpenForReading(absl::StrCat(state_dir, "/", kSpoolFolder))) {}

  absl::StatusOr<VerifyReport> Run() {
    AUTOLOCO_ASSIGN_OR_RETURN(identity_, database_->Identity());
    AUTOLOCO_ASSIGN_OR_RETURN(state_, database_->Load());
    AUTOLOCO_ASSIGN_OR_RETURN(digests_, database_->Digests());
    Checked("database",
            absl::StrCat("run ", identity_ ? identity_->run_id : "not begun", ", version ", state_.run.version, ", ",
                         state_.run.inner_steps_done, " inner steps, ", digests_.size(), " rounds"));
    AUTOLOCO_RETURN_IF_ERROR(CheckLedger());
    AUTOLOCO_RETURN_IF_ERROR(CheckCheckpoints());
    AUTOLOCO_RETURN_IF_ERROR(CheckPayloads());
    AUTOLOCO_RETURN_IF_ERROR(Replay());
    return std::move(report_);
  }

 private:
  void Checked(absl::string_view what, absl::string_view text) {
    report_.checked.push_back(absl::StrCat(what, std::string(12 - what.size(), ' '), text));
  }
  void Problem(absl::string_view text) { report_.problems.push_back(std::string(text)); }
  bool Expect(const absl::Status& status) {
    if (!status.ok()) Problem(status.message());
    return status.ok();
  }

  absl::Status CheckLedger() {
    AUTOLOCO_ASSIGN_OR_RETURN(const LedgerTotals sums, database_->SumLeases());
    std::uint64_t outstanding = 0;
    for (const auto& [key, lease] : state_.leases) outstanding += lease.leased;
    const std::uint64_t parts = sums.applied + sums.late + sums.rejected + sums.lost + sums.unused + outstanding;
    Checked("ledger", absl::StrCat("tokens leased ", sums.leased, " = applied ", sums.applied, " + late ", sums.late,
                                   " + rejected ", sums.rejected, " + lost ", sums.lost, " + unused ", sums.unused,
                                   " + outstanding ", outstanding));
    if (parts != sums.leased)
      Problem(absl::StrCat("ledger: ", sums.leased, " tokens leased, ", parts, " accounted for"));
    if (sums != state_.ledger) {
      Problem(absl::StrCat("ledger: its totals (leased ", state_.ledger.leased, ", applied ", state_.ledger.applied,
                           ") are not the sums of its leases"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckCheckpoints() {
    AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> found,
                              ListCheckpoints(absl::StrCat(state_dir_, "/", kCheckpointsFolder)));
    for (auto folder = found.rbegin(); folder != found.rend(); ++folder) {  // oldest first
      absl::StatusOr<CheckpointManifest> manifest = ReadManifest(absl::StrCat(folder->path, "/", kManifestFile));
      if (!Expect(manifest.status()) || !Expect(CheckCheckpointFiles(folder->path, *manifest))) continue;
      const auto recorded = digests_.find(manifest->snapshot.version);
      if (recorded != digests_.end() && recorded->second.params != manifest->params_digest) {
        Problem(absl::StrCat(folder->path, ": version ", manifest->snapshot.version, " has digest ",
                             manifest->params_digest, ", recorded is ", recorded->second.params));
        continue;
      }
      // One without a view may be of a run that went on without from there.
      if (recorded != digests_.end() && manifest->has_view && recorded->second.view != manifest->view_digest) {
        Problem(absl::StrCat(folder->path, ": version ", manifest->snapshot.version, " has a view of digest ",
                             manifest->view_digest, ", recorded is ", recorded->second.view));
        continue;
      }
      stored_.push_back({folder->path, *std::move(manifest)});
    }
    Checked("checkpoints", absl::StrCat(stored_.size(), " of ", found.size(), " whole"));
    return absl::OkStatus();
  }

  // Of the round that is open or decided: the deltas that must not be lost.
  absl::Status CheckPayloads() {
    AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<Spool::Entry> entries, spool_->List());
    std::uint64_t bytes = 0;
    std::uint64_t leftovers = 0;
    for (const Spool::Entry& entry : entries) {
      AUTOLOCO_ASSIGN_OR_RETURN(const std::string digest, database_->AcceptedDigest(entry.key));
      if (digest.empty()) {
        ++leftovers;  // its record did not get that far; the next start removes it
        continue;
      }
      Expect(ReadPayload(*spool_, entry.key, digest).status());
      bytes += entry.bytes;
    }
    Checked("spool", absl::StrCat(entries.size() - leftovers, " payloads, ", bytes, " bytes",
                                  leftovers > 0 ? absl::StrCat("; ", leftovers, " that nobody was told of") : ""));
    if (!state_.round) return absl::OkStatus();
    std::uint64_t delivered = 0;
    for (const auto& [worker, entry] : state_.round->entries) {
      if (!entry.delivered) continue;
      ++delivered;
      Expect(ReadPayload(*spool_, state_.round->KeyOf(worker, entry), entry.payload_digest).status());
    }
    Checked("open round", absl::StrCat("round ", state_.round->number, ": ", delivered, " of ",
                                       state_.round->entries.size(), " delivered"));
    return absl::OkStatus();
  }

  bool HasPayloads(const DecidedRound& round) const {
    for (const StartCommit::Contribution& contribution : round.decision.contributions) {
      if (!spool_->Read(contribution.push).ok()) return false;
    }
    return !round.decision.contributions.empty();  // else: of a run that went on from a checkpoint alone
  }

  absl::Status Replay() {
    if (stored_.empty()) {
      AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<DecidedRound> all, database_->DecidedRounds(0));
      for (const DecidedRound& round : all) {
        if (HasPayloads(round)) continue;
        Expect(absl::DataLossError(absl::StrCat("no checkpoint is left, and deltas of round ", round.decision.round,
                                                " are missing: a server cannot start from this folder")));
        break;
      }
      Checked("replay",
              absl::StrCat("no checkpoint to begin from; ", all.size(), " rounds since the start of the run"));
      return absl::OkStatus();
    }
    AUTOLOCO_ASSIGN_OR_RETURN(std::vector<DecidedRound> rounds,
                              database_->DecidedRounds(stored_.front().manifest.snapshot.version));
    while (!rounds.empty() && rounds.back().digests.params.empty()) rounds.pop_back();  // not committed yet
    // From the oldest checkpoint with all payloads after it. The newest two must be such.
    std::size_t first_needed = rounds.size();
    while (first_needed > 0 && HasPayloads(rounds[first_needed - 1])) --first_needed;
    const Version from = stored_.front().manifest.snapshot.version + first_needed;
    std::size_t base = 0;
    while (base + 1 < stored_.size() && stored_[base].manifest.snapshot.version < from) ++base;
    const Version begin = stored_[base].manifest.snapshot.version;
    const std::size_t skip = begin - stored_.front().manifest.snapshot.version;
    if (skip > rounds.size()) {
      Problem(absl::StrCat("version ", begin, " is stored as a checkpoint, the state database ends before it"));
      return absl::OkStatus();
    }
    rounds.erase(rounds.begin(), rounds.begin() + static_cast<std::ptrdiff_t>(skip));
    return ReplayFrom(stored_[base], base + 1, rounds);
  }

  absl::Status ReplayFrom(const StoredVersion& base, std::size_t next, const std::vector<DecidedRound>& rounds) {
    AUTOLOCO_ASSIGN_OR_RETURN(ParameterStore parameters, ParameterStore::Allocate(base.manifest.layout));
    const absl::StatusOr<LoadedCheckpoint> loaded = LoadCheckpoint(base.path, base.manifest.run_id, &parameters);
    if (!Expect(loaded.status())) return absl::OkStatus();
    for (const DecidedRound& round : rounds) {
      const absl::Status replayed = ReplayRound(round, *spool_, &parameters, pool_).status();
      if (!Expect(replayed)) return absl::OkStatus();
      const Version version = round.decision.round + 1;
      for (; next < stored_.size() && stored_[next].manifest.snapshot.version <= version; ++next) {
        const CheckpointManifest& manifest = stored_[next].manifest;
        if (manifest.snapshot.version != version || manifest.momentum_digest == Digest128(parameters.momentum()))
          continue;
        Problem(absl::StrCat(stored_[next].path, ": its momentum is not that of version ", version, " done again"));
      }
    }
    Checked("replay", absl::StrCat(rounds.size(), " rounds done again from version ", base.manifest.snapshot.version,
                                   ": every digest as recorded"));
    return absl::OkStatus();
  }

  const std::string state_dir_;
  StateDatabase* const database_;
  WorkPool* const pool_;
  const std::unique_ptr<Spool> spool_;
  std::optional<RunIdentity> identity_;
  CoreState state_;
  std::map<Version, VersionDigests> digests_;
  std::vector<StoredVersion> stored_;  // whole checkpoints, oldest first
  VerifyReport report_;
};

}  // namespace

absl::StatusOr<VerifyReport> VerifyState(const std::string& state_dir, WorkPool* pool) {
  const std::string path = absl::StrCat(state_dir, "/", kStateDatabaseFile);
  std::optional<Version> version;  // of the look before
  for (int look = 1;; ++look) {
    AUTOLOCO_ASSIGN_OR_RETURN(const std::unique_ptr<StateDatabase> database,
                              StateDatabase::Open(path, Database::Mode::kReadOnly));
    AUTOLOCO_ASSIGN_OR_RETURN(const CoreState state, database->Load());
    absl::StatusOr<VerifyReport> report = Verifier(state_dir, database.get(), pool).Run();
    if (!report.ok() || report->problems.empty() || look == kLooksMax || version == state.run.version) return report;
    version = state.run.version;
  }
}

}  // namespace autoloco::server
