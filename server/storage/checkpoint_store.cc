#include "server/storage/checkpoint_store.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/base/crash_point.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/memory_map.h"
#include "common/base/status_macros.h"
#include "common/base/wall_time.h"
#include "common/tensor/finite.h"
#include "common/tensor/model_folder.h"
#include "common/tensor/safetensors.h"
#include "server/storage/checkpoint_manifest.h"

namespace autoloco::server {
namespace {

std::string InFolder(const std::string& folder, const char* name) { return absl::StrCat(folder, "/", name); }

// Reads the file back, so that what is digested is what a reader will find.
absl::StatusOr<CheckpointManifest::File> Describe(const std::string& folder, const char* name) {
  AUTOLOCO_ASSIGN_OR_RETURN(const MemoryMap map, MemoryMap::Open(InFolder(folder, name)));
  return CheckpointManifest::File{name, map.bytes().size(), Digest128(map.bytes())};
}

absl::Status LinkHuggingFaceName(const std::string& folder) {
  const std::string link = InFolder(folder, kHuggingFaceParamsFile);
  if (symlink(kModelParamsFile, link.c_str()) != 0) return FileError("make the link", link, errno);
  return absl::OkStatus();
}

// Removes a half-written folder unless it was published.
class ScopedFolder {
 public:
  explicit ScopedFolder(std::string path) : path_(std::move(path)) {}
  ~ScopedFolder() {
    const absl::Status removed = RemoveFolder(path_);
    if (!removed.ok())
      Log(LogLevel::kWarning, "checkpoint_cleanup_failed").Add("error", std::string(removed.message()));
  }
  ScopedFolder(const ScopedFolder&) = delete;
  ScopedFolder& operator=(const ScopedFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<FolderCheckpointStore>> FolderCheckpointStore::Open(const StateFolder* state,
                                                                                   const DecoderShape& shape,
                                                                                   std::uint32_t keep) {
  AUTOLOCO_CHECK(keep >= 1);
  AUTOLOCO_ASSIGN_OR_RETURN(Layout layout, MakeDecoderLayout(shape));
  AUTOLOCO_RETURN_IF_ERROR(RemoveTemporaryFolders(state->checkpoints_path()));
  std::unique_ptr<FolderCheckpointStore> store(new FolderCheckpointStore(state, shape, std::move(layout), keep));
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<CheckpointFolder> found, ListCheckpoints(state->checkpoints_path()));
  for (const CheckpointFolder& folder : found) {
    const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(InFolder(folder.path, kManifestFile));
    store->entries_.push_back({folder, manifest.ok() && manifest->all_finite});
  }
  return store;
}

absl::StatusOr<StoredCheckpoint> FolderCheckpointStore::Write(const CheckpointContent& content) {
  AUTOLOCO_CHECK(content.params.size() == layout_.value_count());
  AUTOLOCO_CHECK(content.momentum.size() == layout_.value_count());
  AUTOLOCO_CHECK(content.view.empty() || content.view.size() == layout_.value_count());
  const std::uint64_t inner_step = content.snapshot.inner_steps_done;
  const std::string& parent = state_->checkpoints_path();
  const std::string path = absl::StrCat(parent, "/", CheckpointName(inner_step));
  const bool all_finite = AllFinite(content.params) && AllFinite(content.momentum) && AllFinite(content.view);
  const std::string digest = Digest128(content.params);
  if (digest != content.params_digest) {
    return absl::InternalError(absl::StrCat("parameters of version ", content.snapshot.version, ": want digest ",
                                            content.params_digest, ", got ", digest));
  }

  if (!content.view.empty() && Digest128(content.view) != content.view_digest) {
    return absl::InternalError(absl::StrCat("view of version ", content.snapshot.version, ": want digest ",
                                            content.view_digest, ", got ", Digest128(content.view)));
  }

  std::uint64_t bytes = 0;
  {
    const ScopedFolder temporary(absl::StrCat(parent, "/", TemporaryName(inner_step)));
    AUTOLOCO_RETURN_IF_ERROR(RemoveFolder(temporary.path()));
    AUTOLOCO_RETURN_IF_ERROR(MakeFolders(temporary.path()));
    CrashPoint("checkpoint_begun");
    AUTOLOCO_ASSIGN_OR_RETURN(bytes, WriteFiles(content, all_finite, temporary.path()));
    AUTOLOCO_RETURN_IF_ERROR(SyncFolder(temporary.path()));
    AUTOLOCO_RETURN_IF_ERROR(PublishFolder(temporary.path(), path));
    CrashPoint("checkpoint_renamed");
    AUTOLOCO_RETURN_IF_ERROR(SyncFolder(parent));
  }
  std::erase_if(entries_, [inner_step](const Entry& entry) { return entry.folder.inner_step == inner_step; });
  entries_.push_back({{inner_step, path}, all_finite});
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.folder.inner_step > b.folder.inner_step; });
  RemoveOld();
  CrashPoint("checkpoint_done");
  return StoredCheckpoint{path, bytes};
}

// Returns the bytes of all files.
absl::StatusOr<std::uint64_t> FolderCheckpointStore::WriteFiles(const CheckpointContent& content, bool all_finite,
                                                                const std::string& folder) const {
  const std::map<std::string, std::string> metadata = {{"run_id", state_->run_id()},
                                                       {"version", absl::StrCat(content.snapshot.version)}};
  AUTOLOCO_RETURN_IF_ERROR(SaveParameters(InFolder(folder, kModelParamsFile), layout_, content.params, metadata));
  CrashPoint("checkpoint_params");
  std::vector<TensorValues> outer = {{kMomentumTensor, {content.momentum.size()}, content.momentum}};
  if (!content.view.empty()) outer.push_back({kViewTensor, {content.view.size()}, content.view});
  AUTOLOCO_RETURN_IF_ERROR(WriteSafetensors(InFolder(folder, kOuterFile), outer, metadata));
  AUTOLOCO_RETURN_IF_ERROR(WriteFileAtomically(InFolder(folder, kModelConfigFile), ModelConfigText(shape_)));
  AUTOLOCO_RETURN_IF_ERROR(LinkHuggingFaceName(folder));

  CheckpointManifest manifest;
  manifest.run_id = state_->run_id();
  manifest.written_at = absl::FormatTime(absl::RFC3339_sec, WallTimeNow(), absl::UTCTimeZone());
  manifest.snapshot = content.snapshot;
  manifest.layout = layout_;
  manifest.params_digest = content.params_digest;
  manifest.momentum_digest = Digest128(content.momentum);
  manifest.view_digest = content.view.empty() ? content.params_digest : content.view_digest;
  manifest.has_view = !content.view.empty();
  manifest.all_finite = all_finite;
  std::uint64_t bytes = 0;
  for (const char* name : {kModelParamsFile, kOuterFile, kModelConfigFile}) {
    AUTOLOCO_ASSIGN_OR_RETURN(CheckpointManifest::File file, Describe(folder, name));
    bytes += file.bytes;
    manifest.files.push_back(std::move(file));
  }
  const std::string text = ManifestText(manifest);
  if (text.size() > kManifestBytesMax) {
    return absl::ResourceExhaustedError(absl::StrCat("the manifest of version ", content.snapshot.version, " has ",
                                                     text.size(), " bytes, want at most ", kManifestBytesMax));
  }
  AUTOLOCO_RETURN_IF_ERROR(WriteFileAtomically(InFolder(folder, kManifestFile), text));
  return bytes + text.size();
}

// Keeps the newest `keep_` and the newest one that is all finite.
void FolderCheckpointStore::RemoveOld() {
  const auto finite =
      std::find_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.all_finite; });
  const std::string kept = finite == entries_.end() ? "" : finite->folder.path;
  std::vector<Entry> remaining;
  for (std::size_t index = 0; index < entries_.size(); ++index) {
    const CheckpointFolder& folder = entries_[index].folder;
    if (index < keep_ || folder.path == kept) {
      remaining.push_back(entries_[index]);
      continue;
    }
    // Renamed first: a crash midway must not leave half a checkpoint under a checkpoint's name.
    const std::string doomed = absl::StrCat(state_->checkpoints_path(), "/", TemporaryName(folder.inner_step));
    absl::Status removed = RenameFolder(folder.path, doomed);
    if (removed.ok()) removed = RemoveFolder(doomed);
    if (removed.ok() || absl::IsNotFound(removed)) continue;
    Log(LogLevel::kWarning, "old_checkpoint_not_removed").Add("error", std::string(removed.message()));
    remaining.push_back(entries_[index]);
  }
  entries_ = std::move(remaining);
}

}  // namespace autoloco::server
