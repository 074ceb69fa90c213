// manifest.json of a checkpoint: what the folder holds, and all that the core must remember. One top-level key a line;
// the last one, "digest", covers the others. A released field never changes its meaning.
#ifndef AUTOLOCO_SERVER_STORAGE_CHECKPOINT_MANIFEST_H_
#define AUTOLOCO_SERVER_STORAGE_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensor/layout.h"
#include "server/core/types.h"

namespace autoloco::server {

inline constexpr std::uint64_t kManifestFormat = 3;
inline constexpr std::uint64_t kManifestBytesMax = 64 << 20;

struct CheckpointManifest {
  struct File {
    std::string name;  // inside the folder
    std::uint64_t bytes = 0;
    std::string digest;  // Digest128 of its bytes
  };
  std::string run_id;
  std::string written_at;  // RFC 3339, UTC; for people
  CoreSnapshot snapshot;
  Layout layout;
  std::string params_digest;    // Digest128 of the parameters, layout order
  std::string momentum_digest;  // of the outer momentum
  std::string view_digest;      // of the parameters as every worker holds them
  bool has_view = false;        // they are values of their own; false: they are the parameters
  bool all_finite = true;       // all of them
  std::vector<File> files;
};

std::string ManifestText(const CheckpointManifest& manifest);

// DATA_LOSS saying what is wrong: not JSON, a wrong digest, a key missing or of the wrong type, a file name that leaves
// the folder. FAILED_PRECONDITION: another format version.
absl::StatusOr<CheckpointManifest> ParseManifest(absl::string_view text);

// Reads `path`; errors name it. NOT_FOUND and the like as FileError; DATA_LOSS when longer than kManifestBytesMax.
absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& path);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_CHECKPOINT_MANIFEST_H_
