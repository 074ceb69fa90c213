// Where a server goes on after it ended, however it ended: newest whole checkpoint, the recorded rounds after it done
// again, and the round that was open with the deltas it had.
#ifndef AUTOLOCO_SERVER_STORAGE_RECOVERY_H_
#define AUTOLOCO_SERVER_STORAGE_RECOVERY_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/parallel.h"
#include "server/core/core_state.h"
#include "server/runtime/parameter_store.h"
#include "server/runtime/ports.h"
#include "server/storage/spool.h"
#include "server/storage/state_database.h"
#include "server/storage/state_folder.h"

namespace autoloco::server {

// All borrowed.
struct RecoveryTools {
  const StateFolder* folder = nullptr;
  StateDatabase* database = nullptr;
  Spool* spool = nullptr;
  ParameterStore* parameters = nullptr;  // filled
  WorkPool* pool = nullptr;
  // As configured.
  bool lossy_broadcasts = false;    // the parameters get a view of their own
  std::size_t broadcasts_kept = 1;  // at most so many of the rounds done again are given back
};

struct Recovered {
  CoreState state;            // with the digest of the view
  std::string params_digest;  // of version state.run.version, which the parameters are
  // Those that lead to it, oldest first, as far as they came up; none where versions are sent whole.
  std::vector<std::shared_ptr<const EncodedPayload>> broadcasts;
  std::string checkpoint;             // the folder that was read; empty: none
  std::vector<KeptPayload> payloads;  // that the state has accepted and not yet used
  bool new_run = false;               // there was nothing to go on from
};

// Fills the parameters of version 0.
using StartAnewFunction = std::function<absl::Status(ParameterStore*)>;

// Goes on where the run in the folder was. Where no checkpoint is left whole, the run is done again from version 0, as
// long as that is what it was and every delta is there; the damaged ones are set aside then. Removes payloads that
// nobody was told of. Status codes as LoadNewestCheckpoint and StateDatabase, and besides
//   DATA_LOSS            a delta that is needed is missing or damaged, or a round done again gave another digest
//   FAILED_PRECONDITION  state database and checkpoints are not of one run, or version 0 is not what it was, or the run
//                        has lossy broadcasts and the configuration has not, or the other way round
absl::StatusOr<Recovered> Recover(const RecoveryTools& tools, const StartAnewFunction& start_anew);

// Goes back to the checkpoint in the folder `path`: what the run did after it is forgotten, its later checkpoints are
// set aside, and all workers have to join anew. It may go on with lossy broadcasts where it had none, and the other way
// round. Status codes as LoadCheckpoint.
absl::StatusOr<Recovered> GoBackTo(const std::string& path, const RecoveryTools& tools);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_RECOVERY_H_
