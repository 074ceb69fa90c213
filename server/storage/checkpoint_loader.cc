#include "server/storage/checkpoint_loader.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/memory_map.h"
#include "common/base/status_macros.h"
#include "common/tensor/model_folder.h"
#include "common/tensor/safetensors.h"
#include "server/storage/checkpoint_folder.h"
#include "server/storage/checkpoint_manifest.h"

namespace autoloco::server {
namespace {

// What the disk can do to a checkpoint, as against what the operator can do.
bool IsDamage(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsNotFound(status) || absl::IsInvalidArgument(status);
}

absl::Status CheckFiles(const std::string& folder, const CheckpointManifest& manifest) {
  for (const CheckpointManifest::File& file : manifest.files) {
    const std::string path = absl::StrCat(folder, "/", file.name);
    AUTOLOCO_ASSIGN_OR_RETURN(const MemoryMap map, MemoryMap::Open(path));
    if (map.bytes().size() != file.bytes) {
      return absl::DataLossError(absl::StrCat(path, ": want ", file.bytes, " bytes, got ", map.bytes().size()));
    }
    const std::string digest = Digest128(map.bytes());
    if (digest != file.digest) {
      return absl::DataLossError(absl::StrCat(path, ": want digest ", file.digest, ", got ", digest));
    }
  }
  return absl::OkStatus();
}

absl::Status LoadMomentum(const std::string& path, std::span<float> momentum) {
  AUTOLOCO_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  const StoredTensor* const tensor = file.Find(kMomentumTensor);
  if (tensor == nullptr || tensor->type != TensorType::kF32 || tensor->count != momentum.size()) {
    return absl::DataLossError(
        absl::StrCat(path, ": want a tensor ", kMomentumTensor, " of ", momentum.size(), " fp32 values"));
  }
  CopyValues(*tensor, momentum);
  return absl::OkStatus();
}

absl::Status CheckDigest(const std::string& path, const std::string& want, std::span<const float> values) {
  const std::string got = Digest128(values);
  if (got == want) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ": want values of digest ", want, ", got ", got));
}

absl::StatusOr<LoadedCheckpoint> Load(const std::string& folder, const std::string& run_id, const Layout& layout,
                                      std::span<float> params, std::span<float> momentum) {
  AUTOLOCO_ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(absl::StrCat(folder, "/", kManifestFile)));
  if (manifest.run_id != run_id) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", folder, " belongs to run ", manifest.run_id, ", the state folder to run ", run_id));
  }
  const std::string difference = FirstDifference(layout, manifest.layout);
  if (!difference.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", folder, " is of another model than the configuration: ", difference));
  }
  AUTOLOCO_RETURN_IF_ERROR(CheckFiles(folder, manifest));
  const std::string params_path = absl::StrCat(folder, "/", kModelParamsFile);
  AUTOLOCO_RETURN_IF_ERROR(LoadParameters(params_path, layout, params));
  AUTOLOCO_RETURN_IF_ERROR(CheckDigest(params_path, manifest.params_digest, params));
  const std::string outer_path = absl::StrCat(folder, "/", kOuterFile);
  AUTOLOCO_RETURN_IF_ERROR(LoadMomentum(outer_path, momentum));
  AUTOLOCO_RETURN_IF_ERROR(CheckDigest(outer_path, manifest.momentum_digest, momentum));
  return LoadedCheckpoint{folder, manifest.snapshot, manifest.params_digest, manifest.all_finite};
}

// Out of the way of the retention, which would otherwise count it, and of the next checkpoint of that step.
void SetAside(const StateFolder& state, const CheckpointFolder& damaged) {
  const std::string aside = absl::StrCat(state.checkpoints_path(), "/damaged-", CheckpointName(damaged.inner_step));
  absl::Status status = RemoveFolder(aside);
  if (status.ok()) status = RenameFolder(damaged.path, aside);
  if (!status.ok()) {
    Log(LogLevel::kWarning, "damaged_checkpoint_not_set_aside").Add("error", std::string(status.message()));
  }
}

}  // namespace

absl::StatusOr<LoadedCheckpoint> LoadNewestCheckpoint(const StateFolder& state, const Layout& layout,
                                                      std::span<float> params, std::span<float> momentum) {
  AUTOLOCO_CHECK(params.size() == layout.value_count());
  AUTOLOCO_CHECK(momentum.size() == layout.value_count());
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> found, ListCheckpoints(state.checkpoints_path()));
  if (found.empty()) return absl::NotFoundError(absl::StrCat(state.checkpoints_path(), ": no checkpoint"));
  std::vector<CheckpointFolder> damaged;
  std::string first_error;
  for (const CheckpointFolder& folder : found) {
    const absl::StatusOr<LoadedCheckpoint> loaded = Load(folder.path, state.run_id(), layout, params, momentum);
    if (loaded.ok()) {
      for (const CheckpointFolder& bad : damaged) SetAside(state, bad);
      if (!loaded->all_finite) {
        Log(LogLevel::kWarning, "checkpoint_not_finite")
            .Add("path", loaded->path)
            .Add("version", loaded->snapshot.version);
      }
      return loaded;
    }
    if (!IsDamage(loaded.status())) return loaded.status();
    const std::string error(loaded.status().message());
    Log(LogLevel::kWarning, "checkpoint_damaged").Add("path", folder.path).Add("error", error);
    if (first_error.empty()) first_error = error;
    damaged.push_back(folder);
  }
  return absl::DataLossError(absl::StrCat("none of the ", found.size(), " checkpoints in ", state.checkpoints_path(),
                                          " is whole; the newest: ", first_error));
}

}  // namespace autoloco::server
