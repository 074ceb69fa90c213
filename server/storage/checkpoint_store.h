// Checkpoints as folders that load as Llama models.
//
//   checkpoints/step-0000000250/     inner step 250
//     params.safetensors             parameters under Hugging Face's names; model.safetensors is a link to it
//     config.json                    LlamaConfig
//     outer.safetensors              outer momentum, and the view where it is not the parameters; flat
//     manifest.json                  see checkpoint_manifest.h
//
// A folder is written under a temporary name, every file and the folder made durable, and only then given its name.
#ifndef AUTOLOCO_SERVER_STORAGE_CHECKPOINT_STORE_H_
#define AUTOLOCO_SERVER_STORAGE_CHECKPOINT_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/decoder.h"
#include "common/tensor/layout.h"
#include "server/runtime/ports.h"
#include "server/storage/checkpoint_folder.h"
#include "server/storage/state_folder.h"

namespace autoloco::server {

// Not thread-safe: one thread at a time.
class FolderCheckpointStore final : public CheckpointStore {
 public:
  // `state` must outlive the store. `keep`: checkpoints to keep, at least 1. Removes what a crash left half-written.
  // Call it after LoadNewestCheckpoint: damaged checkpoints that were not set aside count as kept ones.
  // INVALID_ARGUMENT when `shape` is no decoder; errors of the file system as FileError.
  static absl::StatusOr<std::unique_ptr<FolderCheckpointStore>> Open(const StateFolder* state,
                                                                     const DecoderShape& shape, std::uint32_t keep);

  // A checkpoint of the same inner step is replaced. RESOURCE_EXHAUSTED (disk full), PERMISSION_DENIED and the like,
  // naming the file; INTERNAL when parameters or view do not have their digest. Nothing that was there before is lost
  // then. A failure to remove an old checkpoint is logged only. REQUIRES: content.params, content.momentum and, unless
  // empty, content.view have the values of the shape's layout.
  absl::StatusOr<StoredCheckpoint> Write(const CheckpointContent& content) override;

 private:
  struct Entry {
    CheckpointFolder folder;
    bool all_finite = false;  // false also where the manifest cannot be read: such a one protects nothing
  };

  FolderCheckpointStore(const StateFolder* state, const DecoderShape& shape, Layout layout, std::uint32_t keep)
      : state_(state), shape_(shape), layout_(std::move(layout)), keep_(keep) {}

  // What a pass over the vectors finds.
  struct Summary {
    std::string params_digest;
    std::string momentum_digest;
    std::string view_digest;
    bool all_finite = true;
  };

  absl::StatusOr<Summary> WriteVectors(const CheckpointContent& content, const std::string& folder) const;
  absl::StatusOr<std::uint64_t> WriteTexts(const CheckpointContent& content, const Summary& summary,
                                           const std::string& folder) const;
  std::map<std::string, std::string> Metadata(Version version) const;
  void RemoveOld();

  const StateFolder* const state_;
  const DecoderShape shape_;
  const Layout layout_;
  const std::uint32_t keep_;
  std::vector<Entry> entries_;  // newest first
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_CHECKPOINT_STORE_H_
