#include "server/initial_state.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/convert.h"
#include "common/tensor/decoder.h"
#include "common/tensor/safetensors.h"
#include "server/storage/checkpoint_store.h"

namespace autoloco::server {
namespace {

absl::Status StartAnew(const v1::RunConfig& run, ParameterStore* parameters) {
  if (!run.model().init_from().empty()) {
    return LoadParameters(run.model().init_from(), parameters->layout(), parameters->params());
  }
  InitializeParameters(parameters->layout(), run.seed(), run.model().init_std(), parameters->params());
  return absl::OkStatus();
}

absl::Status CheckEmpty(const RecoveryTools& tools) {
  AUTOLOCO_ASSIGN_OR_RETURN(const bool has_checkpoints, tools.folder->HasCheckpoints());
  AUTOLOCO_ASSIGN_OR_RETURN(const std::optional<RunIdentity> identity, tools.database->Identity());
  if (!has_checkpoints && !identity) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("server.resume is none, but ", tools.folder->path(), " holds run ",
                                                    tools.folder->run_id(),
                                                    ": use resume = auto or another state_dir"));
}

// A checkpoint from elsewhere becomes one of the folder: the next start looks there.
absl::Status StoreHere(const v1::ServerConfig& config, const RecoveryTools& tools, const Recovered& recovered) {
  const std::string own =
      absl::StrCat(tools.folder->checkpoints_path(), "/", CheckpointName(recovered.state.run.inner_steps_done));
  std::error_code none_there;
  if (std::filesystem::equivalent(own, recovered.checkpoint, none_there)) return absl::OkStatus();
  AUTOLOCO_ASSIGN_OR_RETURN(const std::unique_ptr<FolderCheckpointStore> store,
                            FolderCheckpointStore::Open(tools.folder, ToDecoderShape(config.run().model()),
                                                        config.server().checkpoint_keep()));
  CheckpointContent content;
  content.snapshot = recovered.state.run;
  content.params_digest = recovered.params_digest;
  content.view_digest = recovered.state.view_digest;
  CheckpointReader vectors({tools.parameters->params(), tools.parameters->momentum(), tools.parameters->view_values()});
  content.vectors = &vectors;
  return store->Write(content).status();
}

}  // namespace

absl::StatusOr<Recovered> LoadInitialState(const v1::ServerConfig& config, const RecoveryTools& tools) {
  const std::string& resume = config.server().resume();
  if (resume != "auto" && resume != "none") {
    AUTOLOCO_ASSIGN_OR_RETURN(Recovered recovered, GoBackTo(resume, tools));
    AUTOLOCO_RETURN_IF_ERROR(StoreHere(config, tools, recovered));
    return recovered;
  }
  if (resume == "none") AUTOLOCO_RETURN_IF_ERROR(CheckEmpty(tools));
  return Recover(tools, [&config](ParameterStore* parameters) { return StartAnew(config.run(), parameters); });
}

}  // namespace autoloco::server
