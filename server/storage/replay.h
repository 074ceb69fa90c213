// Does a recorded commit again, from the payloads in the spool: recovery does, and `autoloco verify`.
#ifndef AUTOLOCO_SERVER_STORAGE_REPLAY_H_
#define AUTOLOCO_SERVER_STORAGE_REPLAY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/memory_map.h"
#include "common/base/parallel.h"
#include "server/core/types.h"
#include "server/runtime/apply_commit.h"
#include "server/runtime/parameter_store.h"
#include "server/storage/spool.h"
#include "server/storage/state_database.h"

namespace autoloco::server {

// The payload of an accepted push, checked against the digest it was recorded with. DATA_LOSS naming the push: it is
// missing, torn or damaged; errors as FileError.
absl::StatusOr<MemoryMap> ReadPayload(const Spool& spool, const PushKey& key, absl::string_view digest);

// Turns `parameters`, of version round.decision.round, into the next version, view and broadcast included. DATA_LOSS: a
// payload cannot be had, or a digest is not the recorded one. After an error the parameters are of no version.
absl::StatusOr<CommitOutcome> ReplayRound(const DecidedRound& round, const Spool& spool, ParameterStore* parameters,
                                          WorkPool* pool);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_REPLAY_H_
