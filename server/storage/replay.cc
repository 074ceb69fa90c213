#include "server/storage/replay.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"

namespace autoloco::server {
namespace {

std::string NameOf(const PushKey& key) {
  return absl::StrCat("the delta of ", key.worker.name, "#", key.worker.incarnation, " for round ", key.round);
}

absl::Status CheckSame(Round round, absl::string_view what, absl::string_view want, absl::string_view got) {
  if (want == got) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("round ", round, " done again: want ", what, " of digest ", want, " as recorded, got ", got));
}

}  // namespace

absl::StatusOr<MemoryMap> ReadPayload(const Spool& spool, const PushKey& key, absl::string_view digest) {
  absl::StatusOr<MemoryMap> map = spool.Read(key);
  if (absl::IsNotFound(map.status())) {
    return absl::DataLossError(absl::StrCat(NameOf(key), " is missing: ", map.status().message()));
  }
  if (!map.ok()) return map.status();
  const std::string found = Digest128(map->bytes());
  if (found == digest) return map;
  return absl::DataLossError(absl::StrCat(NameOf(key), " is damaged: want digest ", digest, ", got ", found, " over ",
                                          map->bytes().size(), " bytes"));
}

absl::StatusOr<CommitOutcome> ReplayRound(const DecidedRound& round, const Spool& spool, ParameterStore* parameters,
                                          WorkPool* pool) {
  std::vector<MemoryMap> payloads;
  std::vector<CommitDelta> deltas;
  for (std::size_t i = 0; i < round.decision.contributions.size(); ++i) {
    const StartCommit::Contribution& contribution = round.decision.contributions[i];
    AUTOLOCO_ASSIGN_OR_RETURN(MemoryMap payload, ReadPayload(spool, contribution.push, round.payload_digests[i]));
    deltas.push_back({payload.bytes(), contribution.push.worker.name, contribution.weight});
    payloads.push_back(std::move(payload));
  }
  AUTOLOCO_ASSIGN_OR_RETURN(
      CommitOutcome outcome,
      ApplyCommit({round.decision.round, deltas, round.decision.step, round.decision.method}, parameters, pool));
  const VersionDigests& want = round.digests;
  if (want.params.empty()) return outcome;
  AUTOLOCO_RETURN_IF_ERROR(CheckSame(round.decision.round, "parameters", want.params, outcome.params_digest));
  AUTOLOCO_RETURN_IF_ERROR(CheckSame(round.decision.round, "a view", want.view, outcome.view_digest));
  return outcome;
}

}  // namespace autoloco::server
