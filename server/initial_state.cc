#include "server/initial_state.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/decoder.h"
#include "common/tensor/safetensors.h"
#include "server/storage/checkpoint_loader.h"

namespace autoloco::server {
namespace {

absl::Status StartAnew(const v1::ModelConfig& model, std::uint64_t seed, ParameterStore* parameters) {
  if (!model.init_from().empty()) {
    return LoadParameters(model.init_from(), parameters->layout(), parameters->params());
  }
  InitializeParameters(parameters->layout(), seed, model.init_std(), parameters->params());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<InitialState> LoadInitialState(const v1::ServerConfig& config, const StateFolder& state,
                                              ParameterStore* parameters) {
  if (config.server().resume() == v1::ServerOptions::RESUME_NONE) {
    AUTOLOCO_ASSIGN_OR_RETURN(const bool has_checkpoints, state.HasCheckpoints());
    if (has_checkpoints) {
      return absl::FailedPreconditionError(absl::StrCat("server.resume is none, but ", state.path(),
                                                        " holds checkpoints of run ", state.run_id(),
                                                        ": use resume = auto or another state_dir"));
    }
  }
  InitialState initial;
  const absl::StatusOr<LoadedCheckpoint> loaded =
      LoadNewestCheckpoint(state, parameters->layout(), parameters->params(), parameters->momentum());
  if (loaded.ok()) {
    initial.snapshot = loaded->snapshot;
    initial.params_digest = loaded->params_digest;
    initial.checkpoint = loaded->path;
    return initial;
  }
  if (!absl::IsNotFound(loaded.status())) return loaded.status();
  AUTOLOCO_RETURN_IF_ERROR(StartAnew(config.run().model(), config.run().seed(), parameters));
  initial.params_digest = parameters->ParamsDigest();
  return initial;
}

}  // namespace autoloco::server
