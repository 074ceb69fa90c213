#include "server/storage/checkpoint_manifest.h"

#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace autoloco::server {
namespace {

using Json = nlohmann::json;

// JSON has no NaN and no infinity: they are written as text. Finite numbers come back bit for bit.
Json NumberToJson(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

std::string DumpLine(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string DigestOf(const Json& manifest) {
  const std::string text = DumpLine(manifest);
  return Digest128(std::as_bytes(std::span<const char>(text)));
}

// Reads fields out of one object; the first problem stays in status().
class FieldReader {
 public:
  explicit FieldReader(const Json& object, absl::Status* status) : object_(object), status_(status) {}

  void Read(const char* key, std::uint64_t* value) {
    const Json* const field = Find(key);
    if (field == nullptr) return;
    if (!field->is_number_unsigned()) return Refuse(key, "a whole number");
    *value = field->get<std::uint64_t>();
  }
  void Read(const char* key, std::string* value) {
    const Json* const field = Find(key);
    if (field == nullptr) return;
    if (!field->is_string()) return Refuse(key, "text");
    *value = field->get<std::string>();
  }
  void Read(const char* key, bool* value) {
    const Json* const field = Find(key);
    if (field == nullptr) return;
    if (!field->is_boolean()) return Refuse(key, "true or false");
    *value = field->get<bool>();
  }
  void Read(const char* key, double* value) {
    const Json* const field = Find(key);
    if (field == nullptr) return;
    if (field->is_number()) {
      *value = field->get<double>();
    } else if (*field == "nan") {
      *value = std::numeric_limits<double>::quiet_NaN();
    } else if (*field == "inf" || *field == "-inf") {
      *value = *field == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
    } else {
      Refuse(key, "a number");
    }
  }
  // Null after a problem.
  const Json* Array(const char* key) {
    const Json* const field = Find(key);
    if (field == nullptr || field->is_array()) return field;
    Refuse(key, "an array");
    return nullptr;
  }
  const Json* Object(const char* key) {
    const Json* const field = Find(key);
    if (field == nullptr || field->is_object()) return field;
    Refuse(key, "an object");
    return nullptr;
  }

 private:
  const Json* Find(const char* key) {
    if (object_.is_object()) {
      const auto found = object_.find(key);
      if (found != object_.end()) return &*found;
    }
    if (status_->ok()) *status_ = absl::DataLossError(absl::StrCat("no ", key));
    return nullptr;
  }
  void Refuse(const char* key, const char* want) {
    if (status_->ok()) *status_ = absl::DataLossError(absl::StrCat(key, ": want ", want));
  }

  const Json& object_;
  absl::Status* const status_;
};

Json SnapshotToJson(const CoreSnapshot& snapshot) {
  Json evaluations = Json::array();
  for (const EvaluationPoint& point : snapshot.evaluations) {
    evaluations.push_back({{"version", point.version},
                           {"inner_step", point.inner_step},
                           {"loss", NumberToJson(point.loss)},
                           {"tokens", point.tokens}});
  }
  return {{"version", snapshot.version},
          {"inner_steps_done", snapshot.inner_steps_done},
          {"next_sample", snapshot.next_sample},
          {"next_sample_by_worker", snapshot.next_sample_by_worker},
          {"next_incarnation", snapshot.next_incarnation},
          {"rounds_aborted", snapshot.rounds_aborted},
          {"worker_inner_steps", snapshot.worker_inner_steps},
          {"evaluations", std::move(evaluations)}};
}

CoreSnapshot ParseSnapshot(const Json& object, absl::Status* status) {
  CoreSnapshot snapshot;
  FieldReader reader(object, status);
  reader.Read("version", &snapshot.version);
  reader.Read("inner_steps_done", &snapshot.inner_steps_done);
  reader.Read("next_sample", &snapshot.next_sample);
  reader.Read("next_incarnation", &snapshot.next_incarnation);
  reader.Read("rounds_aborted", &snapshot.rounds_aborted);
  reader.Read("worker_inner_steps", &snapshot.worker_inner_steps);
  if (const Json* samples = reader.Object("next_sample_by_worker")) {
    FieldReader fields(*samples, status);
    for (const auto& [worker, next] : samples->items()) {
      fields.Read(worker.c_str(), &snapshot.next_sample_by_worker[worker]);
    }
  }
  if (const Json* points = reader.Array("evaluations")) {
    for (const Json& entry : *points) {
      EvaluationPoint point;
      FieldReader fields(entry, status);
      fields.Read("version", &point.version);
      fields.Read("inner_step", &point.inner_step);
      fields.Read("loss", &point.loss);
      fields.Read("tokens", &point.tokens);
      if (!status->ok()) return snapshot;
      snapshot.evaluations.push_back(point);
    }
  }
  return snapshot;
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
