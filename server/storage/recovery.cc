#include "server/storage/recovery.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/memory_map.h"
#include "common/base/status_macros.h"
#include "server/storage/checkpoint_loader.h"
#include "server/storage/replay.h"

namespace autoloco::server {
namespace {

// A stored payload as the runtime sees it; nobody writes to it.
class StoredMemory final : public PayloadMemory {
 public:
  explicit StoredMemory(MemoryMap map) : map_(std::move(map)) {}
  std::span<const std::byte> bytes() const override { return map_.bytes(); }
  absl::Status Write(std::uint64_t, std::span<const std::byte>) override {
    return absl::FailedPreconditionError("a stored delta is not written to");
  }

 private:
  const MemoryMap map_;
};

absl::Status WithAdvice(const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "; --resume=PATH goes back to the checkpoint in that folder"));
}

// What the database says of a run that it knows, checked against the checkpoint or the start that was found.
absl::StatusOr<CoreState> LoadState(const RecoveryTools& tools, const RunIdentity& identity,
                                    const std::optional<LoadedCheckpoint>& loaded, const std::string& digest) {
  const std::string& path = tools.database->path();
  if (identity.run_id != tools.folder->run_id()) {
    return absl::FailedPreconditionError(absl::StrCat("state database ", path, " is of run ", identity.run_id,
                                                      ", the state folder of run ", tools.folder->run_id()));
  }
  if (!loaded && identity.initial_digest.empty()) {
    return absl::DataLossError(absl::StrCat("state database ", path, " began with a checkpoint, and none is left"));
  }
  if (!loaded && identity.initial_digest != digest) {
    return absl::FailedPreconditionError(absl::StrCat("parameters of version 0: want digest ", identity.initial_digest,
                                                      " as run ", identity.run_id, " began with, got ", digest,
                                                      ": were the seed, the model or model.init_from changed?"));
  }
  AUTOLOCO_ASSIGN_OR_RETURN(CoreState state, tools.database->Load());
  if (loaded && loaded->snapshot.version > state.run.version) {
    return absl::FailedPreconditionError(absl::StrCat(
        loaded->path, " is of version ", loaded->snapshot.version, ", state database ", path, " ends with version ",
        state.run.version, ": move the database away to go on from the checkpoint alone, or the checkpoint"));
  }
  return state;
}

// Brings the parameters, of version `from` and with recovered->params_digest, to the version of recovered->state.
absl::Status ReplayTo(const RecoveryTools& tools, Version from, Recovered* recovered) {
  const Version to = recovered->state.run.version;
  if (from == to) return absl::OkStatus();
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<DecidedRound> rounds, tools.database->DecidedRounds(from));
  Log(LogLevel::kInfo, "replaying").Add("from_version", from).Add("to_version", to);
  for (Version version = from; version < to; ++version) {
    const bool known = version - from < rounds.size() && !rounds[version - from].digests.params.empty() &&
                       !rounds[version - from].decision.contributions.empty();
    if (!known) {
      return absl::DataLossError(absl::StrCat("state database ", tools.database->path(), " does not say how version ",
                                              version + 1, " was made"));
    }
    AUTOLOCO_ASSIGN_OR_RETURN(CommitOutcome outcome,
                              ReplayRound(rounds[version - from], *tools.spool, tools.parameters, tools.pool));
    Log(LogLevel::kInfo, "replayed").Add("round", version).Add("params_digest", outcome.params_digest);
    recovered->params_digest = std::move(outcome.params_digest);
    recovered->state.view_digest = std::move(outcome.view_digest);
    if (tools.lossy_broadcasts && to - version <= tools.broadcasts_kept) {
      recovered->broadcasts.push_back(std::move(outcome.payload));
    }
  }
  return absl::OkStatus();
}

// Gives the parameters a view of their own, or none, as configured: a run keeps what it has, unless it `may_change`.
absl::Status SettleView(const RecoveryTools& tools, bool may_change, Recovered* recovered) {
  const bool lossy = tools.lossy_broadcasts;
  ParameterStore& parameters = *tools.parameters;
  const std::optional<RoundState>& round = recovered->state.round;
  const bool decided_alike = !round || !round->decision || round->decision->method.broadcast.lossless() != lossy;
  if (!decided_alike || ((parameters.view() != nullptr) != lossy && !may_change)) {
    return absl::FailedPreconditionError(
        absl::StrCat("codec.broadcast: ", lossy ? "lossy" : "lossless", " as configured, and the run's broadcasts are ",
                     lossy ? "lossless" : "lossy", "; --resume=PATH, of a checkpoint, goes on from there with others"));
  }
  if (lossy) {
    AUTOLOCO_RETURN_IF_ERROR(parameters.MakeView());
    parameters.view()->SetVersion(recovered->state.run.version);
  } else {
    parameters.DropView();
  }
  if (!may_change) return absl::OkStatus();
  recovered->state.view_digest = parameters.ViewDigest();
  std::vector<RoundRecord>& history = recovered->state.run.history;
  if (!history.empty()) history.back().view_digest = recovered->state.view_digest;
  return absl::OkStatus();
}

// The payloads that the state's round has accepted: a decided one needs those of its decision alone.
absl::StatusOr<std::vector<KeptPayload>> LoadPayloads(const RecoveryTools& tools, const CoreState& state) {
  std::map<PushKey, std::string, PushKeyOrder> digests;
  if (state.round && state.round->decision) {
    for (const StartCommit::Contribution& contribution : state.round->decision->contributions) {
      AUTOLOCO_ASSIGN_OR_RETURN(digests[contribution.push], tools.database->AcceptedDigest(contribution.push));
    }
  } else if (state.round) {
    for (const auto& [worker, entry] : state.round->entries) {
      if (entry.delivered) digests[state.round->KeyOf(worker, entry)] = entry.payload_digest;
    }
  }
  std::vector<KeptPayload> payloads;
  for (const auto& [key, digest] : digests) {
    AUTOLOCO_ASSIGN_OR_RETURN(MemoryMap map, ReadPayload(*tools.spool, key, digest));
    payloads.push_back({key, Payload::Whole(std::make_unique<StoredMemory>(std::move(map)))});
  }
  return payloads;
}

// What became durable without its record: nobody was told that it was accepted.
absl::Status DropUnrecorded(const RecoveryTools& tools) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<Spool::Entry> entries, tools.spool->List());
  for (const Spool::Entry& entry : entries) {
    AUTOLOCO_ASSIGN_OR_RETURN(const std::string digest, tools.database->AcceptedDigest(entry.key));
    if (digest.empty()) AUTOLOCO_RETURN_IF_ERROR(tools.spool->Drop(entry.key));
  }
  return absl::OkStatus();
}

// A database that knows no run beside deltas that were accepted: it was lost, and with it what they count for.
absl::Status WarnOfLostDatabase(const RecoveryTools& tools) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<Spool::Entry> entries, tools.spool->List());
  if (entries.empty()) return absl::OkStatus();
  Log(LogLevel::kWarning, "state_database_lost")
      .Add("path", tools.database->path())
      .Add("deltas", entries.size())
      .Add("detail", "it is empty, but the spool is not: accepted deltas that no checkpoint covers do not count");
  return absl::OkStatus();
}

// Version 0 without momentum or a view of its own, whatever the buffers held.
absl::Status StartFromNothing(ParameterStore* parameters, const StartAnewFunction& start_anew) {
  parameters->DropView();
  const std::span<float> momentum = parameters->momentum();
  std::fill(momentum.begin(), momentum.end(), 0.0f);
  return start_anew(parameters);
}

// The run's newest state, from the parameters of the checkpoint that was loaded, or of version 0.
absl::StatusOr<Recovered> GoOnFrom(const RecoveryTools& tools, const std::optional<LoadedCheckpoint>& loaded,
                                   const std::optional<RunIdentity>& identity) {
  Recovered recovered;
  if (loaded) recovered.checkpoint = loaded->path;
  const std::string digest = loaded ? loaded->params_digest : tools.parameters->ParamsDigest();
  if (identity) {
    AUTOLOCO_ASSIGN_OR_RETURN(recovered.state, LoadState(tools, *identity, loaded, digest));
  } else {
    AUTOLOCO_RETURN_IF_ERROR(WarnOfLostDatabase(tools));
    if (loaded) recovered.state = StateOf(loaded->snapshot);
    recovered.new_run = !loaded;
    AUTOLOCO_RETURN_IF_ERROR(tools.database->Begin({tools.folder->run_id(), loaded ? "" : digest}, recovered.state));
  }
  // The core drops payloads by what it knows to be stored: let it count from what was found.
  recovered.state.checkpoint = loaded ? std::optional<Version>(loaded->snapshot.version) : std::nullopt;

  recovered.params_digest = digest;
  recovered.state.view_digest = loaded ? loaded->view_digest : digest;
  const absl::Status replayed = ReplayTo(tools, recovered.state.checkpoint.value_or(0), &recovered);
  if (!replayed.ok()) return loaded ? WithAdvice(replayed) : replayed;
  AUTOLOCO_RETURN_IF_ERROR(SettleView(tools, recovered.state.run.version == 0, &recovered));
  absl::StatusOr<std::vector<KeptPayload>> payloads = LoadPayloads(tools, recovered.state);
  if (!payloads.ok()) return loaded ? WithAdvice(payloads.status()) : payloads.status();
  recovered.payloads = *std::move(payloads);
  AUTOLOCO_RETURN_IF_ERROR(DropUnrecorded(tools));
  return recovered;
}

// There are checkpoints, and none is whole (`damage`): the whole run is done again, if it can be.
absl::StatusOr<Recovered> DoAgain(const RecoveryTools& tools, const StartAnewFunction& start_anew,
                                  const RunIdentity& identity, const absl::Status& damage) {
  Log(LogLevel::kWarning, "doing_run_again").Add("reason", std::string(damage.message()));
  const absl::Status started = StartFromNothing(tools.parameters, start_anew);
  absl::StatusOr<Recovered> recovered =
      started.ok() ? GoOnFrom(tools, std::nullopt, identity) : absl::StatusOr<Recovered>(started);
  if (!recovered.ok()) {
    return absl::DataLossError(absl::StrCat(
        damage.message(), "; nor can the run be done again from its start: ", recovered.status().message()));
  }
  AUTOLOCO_RETURN_IF_ERROR(SetAsideDamaged(*tools.folder));
  return recovered;
}

}  // namespace

absl::StatusOr<Recovered> Recover(const RecoveryTools& tools, const StartAnewFunction& start_anew) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::optional<RunIdentity> identity, tools.database->Identity());
  ParameterStore& parameters = *tools.parameters;
  const absl::StatusOr<LoadedCheckpoint> newest = LoadNewestCheckpoint(*tools.folder, &parameters);
  if (newest.ok()) return GoOnFrom(tools, *newest, identity);
  if (absl::IsDataLoss(newest.status()) && identity) return DoAgain(tools, start_anew, *identity, newest.status());
  if (!absl::IsNotFound(newest.status())) return newest.status();
  AUTOLOCO_RETURN_IF_ERROR(StartFromNothing(&parameters, start_anew));
  return GoOnFrom(tools, std::nullopt, identity);
}

absl::StatusOr<Recovered> GoBackTo(const std::string& path, const RecoveryTools& tools) {
  ParameterStore& parameters = *tools.parameters;
  AUTOLOCO_ASSIGN_OR_RETURN(const LoadedCheckpoint loaded, LoadCheckpoint(path, tools.folder->run_id(), &parameters));
  AUTOLOCO_ASSIGN_OR_RETURN(const std::optional<RunIdentity> identity, tools.database->Identity());
  AUTOLOCO_RETURN_IF_ERROR(SetAsideNewer(*tools.folder, loaded.snapshot.inner_steps_done));
  Recovered recovered;
  recovered.state = StateOf(loaded.snapshot);
  recovered.params_digest = loaded.params_digest;
  recovered.checkpoint = loaded.path;
  AUTOLOCO_RETURN_IF_ERROR(SettleView(tools, true, &recovered));
  AUTOLOCO_RETURN_IF_ERROR(
      tools.database->Begin({tools.folder->run_id(), identity ? identity->initial_digest : ""}, recovered.state));
  AUTOLOCO_ASSIGN_OR_RETURN(recovered.state.ledger, tools.database->SumLeases());  // of the rounds that stay
  AUTOLOCO_RETURN_IF_ERROR(DropUnrecorded(tools));
  Log(LogLevel::kWarning, "gone_back").Add("checkpoint", path).Add("version", recovered.state.run.version);
  return recovered;
}

}  // namespace autoloco::server
