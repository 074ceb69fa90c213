// Where a server process starts from: the newest checkpoint of the state folder, or a new run.
#ifndef AUTOLOCO_SERVER_INITIAL_STATE_H_
#define AUTOLOCO_SERVER_INITIAL_STATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "autoloco/v1/run_config.pb.h"
#include "server/core/types.h"
#include "server/runtime/parameter_store.h"
#include "server/storage/state_folder.h"

namespace autoloco::server {

struct InitialState {
  CoreSnapshot snapshot;
  std::string params_digest;
  std::string checkpoint;  // the folder it was read from; empty: a new run
};

// Fills `parameters`. Goes on from the newest whole checkpoint; where there is none, the parameters come from
// model.init_from or from the seed. FAILED_PRECONDITION when server.resume is none and there are checkpoints; errors as
// LoadNewestCheckpoint and LoadParameters.
absl::StatusOr<InitialState> LoadInitialState(const v1::ServerConfig& config, const StateFolder& state,
                                              ParameterStore* parameters);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_INITIAL_STATE_H_
