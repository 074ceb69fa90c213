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
#include "common/base/status_macros.h"
#include "common/base/wall_time.h"
#include "common/tensor/finite.h"
#include "common/tensor/model_folder.h"
#include "common/tensor/safetensors.h"
#include "server/storage/checkpoint_manifest.h"
#include "server/storage/file_digest.h"

namespace autoloco::server {
namespace {

std::string InFolder(const std::string& folder, const char* name) { return absl::StrCat(folder, "/", name); }

// Reads the file back, so that what is digested is what a reader will find.
absl::StatusOr<CheckpointManifest::File> Describe(const std::string& folder, const char* name) {
  AUTOLOCO_ASSIGN_OR_RETURN(FileDigest file, DigestFile(InFolder(folder, name)));
  return CheckpointManifest::File{name, file.bytes, std::move(file.digest)};
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
  AUTOLOCO_CHECK(content.vectors->value_count() == layout_.value_count());
  const std::uint64_t inner_step = content.snapshot.inner_steps_done;
  const std::string& parent = state_->checkpoints_path();
  const std::string path = absl::StrCat(parent, "/", CheckpointName(inner_step));

  std::uint64_t bytes = 0;
  bool all_finite = false;
  {
    const ScopedFolder temporary(absl::StrCat(parent, "/", TemporaryName(inner_step)));
    AUTOLOCO_RETURN_IF_ERROR(RemoveFolder(temporary.path()));
    AUTOLOCO_RETURN_IF_ERROR(MakeFolders(temporary.path()));
    CrashPoint("checkpoint_begun");
    AUTOLOCO_ASSIGN_OR_RETURN(const Summary summary, WriteVectors(content, temporary.path()));
    all_finite = summary.all_finite;
    AUTOLOCO_ASSIGN_OR_RETURN(bytes, WriteTexts(content, summary, temporary.path()));
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

// One pass over the vectors, so that a commit that comes meanwhile is held up as little as can be.
absl::StatusOr<FolderCheckpointStore::Summary> FolderCheckpointStore::WriteVectors(const CheckpointContent& content,
                                                                                   const std::string& folder) const {
  CheckpointReader& vectors = *content.vectors;
  const std::uint64_t count = layout_.value_count();
  std::vector<TensorShape> outer_shapes = {{kMomentumTensor, {count}}};
  if (vectors.has_view()) outer_shapes.push_back({kViewTensor, {count}});
  const std::map<std::string, std::string> metadata = Metadata(content.snapshot.version);
  AUTOLOCO_ASSIGN_OR_RETURN(SafetensorsWriter params, SafetensorsWriter::Create(InFolder(folder, kModelParamsFile),
                                                                                TensorShapes(layout_), metadata));
  AUTOLOCO_ASSIGN_OR_RETURN(SafetensorsWriter outer,
                            SafetensorsWriter::Create(InFolder(folder, kOuterFile), outer_shapes, metadata));
  Digest128Stream params_digest;
  Digest128Stream momentum_digest;
  Digest128Stream view_digest;
  Summary summary;
  for (std::uint64_t first = 0; first < count; first += kBlockValues) {
    const CheckpointReader::Vectors block = vectors.Next();
    AUTOLOCO_RETURN_IF_ERROR(params.Write(first, block.params));
    AUTOLOCO_RETURN_IF_ERROR(outer.Write(first, block.momentum));
    AUTOLOCO_RETURN_IF_ERROR(outer.Write(count + first, block.view));
    params_digest.Update(std::as_bytes(block.params));
    momentum_digest.Update(std::as_bytes(block.momentum));
    view_digest.Update(std::as_bytes(block.view));
    summary.all_finite =
        summary.all_finite && AllFinite(block.params) && AllFinite(block.momentum) && AllFinite(block.view);
  }
  summary.params_digest = params_digest.Finish();
  summary.momentum_digest = momentum_digest.Finish();
  summary.view_digest = vectors.has_view() ? view_digest.Finish() : summary.params_digest;
  const auto check = [&content](const char* what, const std::string& want, const std::string& got) {
    if (want.empty() || want == got) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat(what, " of version ", content.snapshot.version, ": want digest ", want, ", got ", got));
  };
  AUTOLOCO_RETURN_IF_ERROR(check("parameters", content.params_digest, summary.params_digest));
  AUTOLOCO_RETURN_IF_ERROR(check("view", content.view_digest, summary.view_digest));
  AUTOLOCO_RETURN_IF_ERROR(params.Commit());
  CrashPoint("checkpoint_params");
  AUTOLOCO_RETURN_IF_ERROR(outer.Commit());
  return summary;
}

std::map<std::string, std::string> FolderCheckpointStore::Metadata(Version version) const {
  return {{"run_id", state_->run_id()}, {"version", absl::StrCat(version)}};
}

// All that is not vectors. Returns the bytes of all files.
absl::StatusOr<std::uint64_t> FolderCheckpointStore::WriteTexts(const CheckpointContent& content,
                                                                const Summary& summary,
                                                                const std::string& folder) const {
  AUTOLOCO_RETURN_IF_ERROR(WriteFileAtomically(InFolder(folder, kModelConfigFile), ModelConfigText(shape_)));
  AUTOLOCO_RETURN_IF_ERROR(LinkHuggingFaceName(folder));

  CheckpointManifest manifest;
  manifest.run_id = state_->run_id();
  manifest.written_at = absl::FormatTime(absl::RFC3339_sec, WallTimeNow(), absl::UTCTimeZone());
  manifest.snapshot = content.snapshot;
  manifest.layout = layout_;
  manifest.params_digest = summary.params_digest;
  manifest.momentum_digest = summary.momentum_digest;
  manifest.view_digest = summary.view_digest;
  manifest.has_view = content.vectors->has_view();
  manifest.all_finite = summary.all_finite;
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
