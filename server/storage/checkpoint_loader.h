// Finds the checkpoint that a run goes on from.
#ifndef AUTOLOCO_SERVER_STORAGE_CHECKPOINT_LOADER_H_
#define AUTOLOCO_SERVER_STORAGE_CHECKPOINT_LOADER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/core/types.h"
#include "server/runtime/parameter_store.h"
#include "server/storage/checkpoint_manifest.h"
#include "server/storage/state_folder.h"

namespace autoloco::server {

struct LoadedCheckpoint {
  std::string path;
  CoreSnapshot snapshot;
  std::string params_digest;
  std::string view_digest;
  bool all_finite = true;
};

// Fills `parameters` from the newest checkpoint that is whole and all finite: every file has its size and digest, and
// so have the values. They have a view of their own afterwards if the checkpoint has. A damaged one is named in a
// warning, and so is one that is not finite where there is a finite one; both are set aside (damaged-step-N,
// not-finite-step-N) once an older one has been loaded. On an error the values are undefined:
//   NOT_FOUND            there is no checkpoint at all
//   DATA_LOSS            there are some, and none is whole; all stay where they are
//   FAILED_PRECONDITION  the newest belongs to another layout (the first difference is named), another run, or a newer
//                        format; nothing is skipped then
//   others               the newest cannot be read although it may be whole (permissions, memory)
absl::StatusOr<LoadedCheckpoint> LoadNewestCheckpoint(const StateFolder& state, ParameterStore* parameters);

// The same from the one folder `path`, finite or not, wherever it lies.
absl::StatusOr<LoadedCheckpoint> LoadCheckpoint(const std::string& path, const std::string& run_id,
                                                ParameterStore* parameters);

// Gives checkpoints of more than `inner_step` steps another name (gone-back-step-N), so that no later start takes them
// for the newest.
absl::Status SetAsideNewer(const StateFolder& state, std::uint64_t inner_step);

// The same for all checkpoints (damaged-step-N): the run goes on without them.
absl::Status SetAsideDamaged(const StateFolder& state);

// OK when every file that the manifest of the checkpoint in `folder` lists has its size and digest.
absl::Status CheckCheckpointFiles(const std::string& folder, const CheckpointManifest& manifest);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_CHECKPOINT_LOADER_H_
