#include "server/storage/checkpoint_manifest.h"

#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "server/storage/json_fields.h"
#include "server/storage/snapshot_json.h"

namespace autoloco::server {
namespace {

std::string DumpLine(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string DigestOf(const Json& manifest) {
  const std::string text = DumpLine(manifest);
  return Digest128(std::as_bytes(std::span<const char>(text)));
}

Json LayoutToJson(const Layout& layout) {
  Json tensors = Json::array();
  for (const TensorEntry& tensor : layout.tensors()) {
    tensors.push_back({{"name", tensor.spec.name}, {"shape", tensor.spec.shape}});
  }
  return tensors;
}

Layout ParseLayout(const Json& array, absl::Status* status) {
  std::vector<TensorSpec> tensors;
  for (const Json& entry : array) {
    TensorSpec tensor;
    FieldReader fields(entry, status);
    fields.Read("name", &tensor.name);
    if (const Json* shape = fields.Array("shape")) {
      for (const Json& extent : *shape) {
        tensor.shape.push_back(extent.is_number_unsigned() ? extent.get<std::uint64_t>() : 0);  // Make refuses 0
      }
    }
    if (!status->ok()) return {};
    tensors.push_back(std::move(tensor));
  }
  absl::StatusOr<Layout> layout = Layout::Make(std::move(tensors));
  if (layout.ok()) return *std::move(layout);
  if (status->ok()) *status = absl::DataLossError(absl::StrCat("layout: ", layout.status().message()));
  return {};
}

Json FilesToJson(const std::vector<CheckpointManifest::File>& files) {
  Json array = Json::array();
  for (const CheckpointManifest::File& file : files) {
    array.push_back({{"name", file.name}, {"bytes", file.bytes}, {"digest", file.digest}});
  }
  return array;
}

std::vector<CheckpointManifest::File> ParseFiles(const Json& array, absl::Status* status) {
  std::vector<CheckpointManifest::File> files;
  for (const Json& entry : array) {
    CheckpointManifest::File file;
    FieldReader fields(entry, status);
    fields.Read("name", &file.name);
    fields.Read("bytes", &file.bytes);
    fields.Read("digest", &file.digest);
    const bool inside = !file.name.empty() && file.name[0] != '.' && file.name.find('/') == std::string::npos &&
                        file.name.find('\0') == std::string::npos;
    if (status->ok() && !inside) *status = absl::DataLossError("files: want names inside the folder");
    if (!status->ok()) return {};
    files.push_back(std::move(file));
  }
  return files;
}

// Takes "digest" out and compares it with what the rest gives.
absl::Status CheckDigest(Json* object) {
  const auto found = object->find("digest");
  if (found == object->end() || !found->is_string()) return absl::DataLossError("no digest");
  const std::string want = found->get<std::string>();
  object->erase(found);
  if (DigestOf(*object) != want) return absl::DataLossError("it does not match its own digest");
  return absl::OkStatus();
}

}  // namespace

std::string ManifestText(const CheckpointManifest& manifest) {
  const Json object = {{"format", kManifestFormat},
                       {"run_id", manifest.run_id},
                       {"written_at", manifest.written_at},
                       {"snapshot", SnapshotToJson(manifest.snapshot)},
                       {"layout", LayoutToJson(manifest.layout)},
                       {"layout_hash", absl::StrCat(absl::Hex(manifest.layout.hash(), absl::kZeroPad16))},
                       {"params_digest", manifest.params_digest},
                       {"momentum_digest", manifest.momentum_digest},
                       {"view_digest", manifest.view_digest},
                       {"has_view", manifest.has_view},
                       {"all_finite", manifest.all_finite},
                       {"files", FilesToJson(manifest.files)}};
  std::string text = "{\n";
  for (const auto& [key, value] : object.items()) {
    absl::StrAppend(&text, DumpLine(key), ": ", DumpLine(value), ",\n");
  }
  absl::StrAppend(&text, "\"digest\": \"", DigestOf(object), "\"\n}\n");
  return text;
}

absl::StatusOr<CheckpointManifest> ParseManifest(absl::string_view text) {
  Json object = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return absl::DataLossError("it is not a JSON object");
  AUTOLOCO_RETURN_IF_ERROR(CheckDigest(&object));
  absl::Status status;
  FieldReader reader(object, &status);
  std::uint64_t format = 0;
  reader.Read("format", &format);
  AUTOLOCO_RETURN_IF_ERROR(status);
  if (format != kManifestFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat("format ", format, "; this program reads format ", kManifestFormat));
  }
  CheckpointManifest manifest;
  reader.Read("run_id", &manifest.run_id);
  reader.Read("written_at", &manifest.written_at);
  reader.Read("params_digest", &manifest.params_digest);
  reader.Read("momentum_digest", &manifest.momentum_digest);
  reader.Read("view_digest", &manifest.view_digest);
  reader.Read("has_view", &manifest.has_view);
  reader.Read("all_finite", &manifest.all_finite);
  std::string layout_hash;
  reader.Read("layout_hash", &layout_hash);
  if (const Json* snapshot = reader.Object("snapshot")) manifest.snapshot = ParseSnapshot(*snapshot, &status);
  if (const Json* layout = reader.Array("layout")) manifest.layout = ParseLayout(*layout, &status);
  if (const Json* files = reader.Array("files")) manifest.files = ParseFiles(*files, &status);
  AUTOLOCO_RETURN_IF_ERROR(status);
  if (layout_hash != absl::StrCat(absl::Hex(manifest.layout.hash(), absl::kZeroPad16))) {
    return absl::DataLossError("layout_hash is not that of the layout");
  }
  return manifest;
}

absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path, kManifestBytesMax);
  if (absl::IsResourceExhausted(text.status())) return absl::DataLossError(text.status().message());
  AUTOLOCO_RETURN_IF_ERROR(text.status());
  absl::StatusOr<CheckpointManifest> manifest = ParseManifest(*text);
  if (manifest.ok()) return manifest;
  return absl::Status(manifest.status().code(), absl::StrCat(path, ": ", manifest.status().message()));
}

}  // namespace autoloco::server
