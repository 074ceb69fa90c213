// Names and files of checkpoint folders.
#ifndef AUTOLOCO_SERVER_STORAGE_CHECKPOINT_FOLDER_H_
#define AUTOLOCO_SERVER_STORAGE_CHECKPOINT_FOLDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace autoloco::server {

inline constexpr char kOuterFile[] = "outer.safetensors";  // what the server holds beside the parameters
inline constexpr char kMomentumTensor[] = "momentum";      // flat, layout order
inline constexpr char kViewTensor[] = "view";              // alike; only where it is not the parameters
inline constexpr char kManifestFile[] = "manifest.json";

// A folder of this form is whole unless the disk damaged it: it got its name by a rename.
struct CheckpointFolder {
  std::uint64_t inner_step = 0;
  std::string path;
};

// "step-0000000250"
std::string CheckpointName(std::uint64_t inner_step);

// The checkpoints in `folder`, newest (highest inner step) first; other names are not looked at.
absl::StatusOr<std::vector<CheckpointFolder>> ListCheckpoints(const std::string& folder);

// A name beside CheckpointName for a folder that is being written or removed, never listed.
std::string TemporaryName(std::uint64_t inner_step);
// Removes what a crash left under temporary names in `folder`.
absl::Status RemoveTemporaryFolders(const std::string& folder);

// Removes `path` with all it holds; fine when it does not exist.
absl::Status RemoveFolder(const std::string& path);
// rename(2).
absl::Status RenameFolder(const std::string& from, const std::string& to);
// Gives the folder `from` the name `to`, in one step also where `to` exists: that one is then called `from`. On a file
// system that cannot swap, an existing `to` is removed first.
absl::Status PublishFolder(const std::string& from, const std::string& to);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_CHECKPOINT_FOLDER_H_
