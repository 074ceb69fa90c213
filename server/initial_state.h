// Where a server process starts from, as server.resume says: on from where the run was, a new run, or back to a
// checkpoint.
#ifndef AUTOLOCO_SERVER_INITIAL_STATE_H_
#define AUTOLOCO_SERVER_INITIAL_STATE_H_

#include "absl/status/statusor.h"
#include "autoloco/v1/run_config.pb.h"
#include "server/storage/recovery.h"

namespace autoloco::server {

// Fills the parameters. Version 0 comes from model.init_from or from the seed. FAILED_PRECONDITION when server.resume
// is none and the folder holds a run; errors as Recover, GoBackTo and LoadParameters.
absl::StatusOr<Recovered> LoadInitialState(const v1::ServerConfig& config, const RecoveryTools& tools);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_INITIAL_STATE_H_
