#include "server/storage/checkpoint_loader.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/tensor/model_folder.h"
#include "common/tensor/safetensors.h"
#include "server/storage/checkpoint_folder.h"
#include "server/storage/checkpoint_manifest.h"
#include "server/storage/file_digest.h"

namespace autoloco::server {
namespace {

constexpr char kDamagedPrefix[] = "damaged-";

// What the disk can do to a checkpoint, as against what the operator can do.
bool IsDamage(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsNotFound(status) || absl::IsInvalidArgument(status);
}

absl::Status LoadTensor(const SafetensorsFile& file, const std::string& path, const char* name,
                        std::span<float> values) {
  const StoredTensor* const tensor = file.Find(name);
  if (tensor == nullptr || tensor->type != TensorType::kF32 || tensor->count != values.size()) {
    return absl::DataLossError(absl::StrCat(path, ": want a tensor ", name, " of ", values.size(), " fp32 values"));
  }
  CopyValues(*tensor, values);
  return absl::OkStatus();
}

absl::Status CheckDigest(const std::string& path, const std::string& want, std::span<const float> values) {
  const std::string got = Digest128(values);
  if (got == want) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ": want values of digest ", want, ", got ", got));
}

// The manifest of a checkpoint that this run can go on from.
absl::StatusOr<CheckpointManifest> ReadOwnManifest(const std::string& folder, const std::string& run_id,
                                                   const Layout& layout) {
  AUTOLOCO_ASSIGN_OR_RETURN(CheckpointManifest manifest, ReadManifest(absl::StrCat(folder, "/", kManifestFile)));
  if (manifest.run_id != run_id) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", folder, " belongs to run ", manifest.run_id, ", the state folder to run ", run_id));
  }
  const std::string difference = FirstDifference(layout, manifest.layout);
  if (!difference.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", folder, " is of another model than the configuration: ", difference));
  }
  return manifest;
}

// What the server holds beside the parameters.
absl::Status LoadOuter(const std::string& path, const CheckpointManifest& manifest, ParameterStore* parameters) {
  AUTOLOCO_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  AUTOLOCO_RETURN_IF_ERROR(LoadTensor(file, path, kMomentumTensor, parameters->momentum()));
  AUTOLOCO_RETURN_IF_ERROR(CheckDigest(path, manifest.momentum_digest, parameters->momentum()));
  if (!manifest.has_view) return absl::OkStatus();
  AUTOLOCO_RETURN_IF_ERROR(parameters->MakeView());
  AUTOLOCO_RETURN_IF_ERROR(LoadTensor(file, path, kViewTensor, parameters->view_values()));
  return CheckDigest(path, manifest.view_digest, parameters->view_values());
}

absl::StatusOr<LoadedCheckpoint> Load(const std::string& folder, const CheckpointManifest& manifest,
                                      ParameterStore* parameters) {
  AUTOLOCO_RETURN_IF_ERROR(CheckCheckpointFiles(folder, manifest));
  const std::string params_path = absl::StrCat(folder, "/", kModelParamsFile);
  parameters->DropView();
  AUTOLOCO_RETURN_IF_ERROR(LoadParameters(params_path, parameters->layout(), parameters->params()));
  AUTOLOCO_RETURN_IF_ERROR(CheckDigest(params_path, manifest.params_digest, parameters->params()));
  AUTOLOCO_RETURN_IF_ERROR(LoadOuter(absl::StrCat(folder, "/", kOuterFile), manifest, parameters));
  return LoadedCheckpoint{folder, manifest.snapshot, manifest.params_digest, manifest.view_digest, manifest.all_finite};
}

// Out of the way of the retention, which would otherwise count it, and of the next checkpoint of that step.
absl::Status SetAside(const StateFolder& state, const CheckpointFolder& folder, absl::string_view prefix) {
  const std::string aside = absl::StrCat(state.checkpoints_path(), "/", prefix, CheckpointName(folder.inner_step));
  AUTOLOCO_RETURN_IF_ERROR(RemoveFolder(aside));
  return RenameFolder(folder.path, aside);
}

struct Passed {
  CheckpointFolder folder;
  const char* prefix = nullptr;  // of the name that it gets
};

}  // namespace

absl::Status CheckCheckpointFiles(const std::string& folder, const CheckpointManifest& manifest) {
  for (const CheckpointManifest::File& file : manifest.files) {
    const std::string path = absl::StrCat(folder, "/", file.name);
    AUTOLOCO_ASSIGN_OR_RETURN(const FileDigest found, DigestFile(path));
    if (found.bytes != file.bytes) {
      return absl::DataLossError(absl::StrCat(path, ": want ", file.bytes, " bytes, got ", found.bytes));
    }
    if (found.digest != file.digest) {
      return absl::DataLossError(absl::StrCat(path, ": want digest ", file.digest, ", got ", found.digest));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<LoadedCheckpoint> LoadCheckpoint(const std::string& path, const std::string& run_id,
                                                ParameterStore* parameters) {
  AUTOLOCO_ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadOwnManifest(path, run_id, parameters->layout()));
  return Load(path, manifest, parameters);
}

absl::Status SetAsideNewer(const StateFolder& state, std::uint64_t inner_step) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> found, ListCheckpoints(state.checkpoints_path()));
  for (const CheckpointFolder& folder : found) {
    if (folder.inner_step > inner_step) AUTOLOCO_RETURN_IF_ERROR(SetAside(state, folder, "gone-back-"));
  }
  return SyncFolder(state.checkpoints_path());
}

absl::Status SetAsideDamaged(const StateFolder& state) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> found, ListCheckpoints(state.checkpoints_path()));
  for (const CheckpointFolder& folder : found) AUTOLOCO_RETURN_IF_ERROR(SetAside(state, folder, kDamagedPrefix));
  return SyncFolder(state.checkpoints_path());
}

absl::StatusOr<LoadedCheckpoint> LoadNewestCheckpoint(const StateFolder& state, ParameterStore* parameters) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> found, ListCheckpoints(state.checkpoints_path()));
  if (found.empty()) return absl::NotFoundError(absl::StrCat(state.checkpoints_path(), ": no checkpoint"));
  std::vector<Passed> passed;
  std::string not_finite;  // the newest such one
  std::string first_error;
  for (const CheckpointFolder& folder : found) {
    absl::StatusOr<CheckpointManifest> manifest = ReadOwnManifest(folder.path, state.run_id(), parameters->layout());
    if (manifest.ok() && !manifest->all_finite) {
      Log(LogLevel::kWarning, "checkpoint_not_finite").Add("path", folder.path);
      if (not_finite.empty()) not_finite = folder.path;
      passed.push_back({folder, "not-finite-"});
      continue;
    }
    const absl::StatusOr<LoadedCheckpoint> loaded =
        manifest.ok() ? Load(folder.path, *manifest, parameters) : absl::StatusOr<LoadedCheckpoint>(manifest.status());
    if (loaded.ok()) {
      for (const Passed& other : passed) {
        const absl::Status status = SetAside(state, other.folder, other.prefix);
        if (status.ok()) continue;
        Log(LogLevel::kWarning, "checkpoint_not_set_aside").Add("error", std::string(status.message()));
      }
      return loaded;
    }
    if (!IsDamage(loaded.status())) return loaded.status();
    const std::string error(loaded.status().message());
    Log(LogLevel::kWarning, "checkpoint_damaged").Add("path", folder.path).Add("error", error);
    if (first_error.empty()) first_error = error;
    passed.push_back({folder, kDamagedPrefix});
  }
  if (!not_finite.empty()) return LoadCheckpoint(not_finite, state.run_id(), parameters);
  return absl::DataLossError(absl::StrCat("none of the ", found.size(), " checkpoints in ", state.checkpoints_path(),
                                          " is whole; the newest: ", first_error));
}

}  // namespace autoloco::server
