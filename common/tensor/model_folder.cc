#include "common/tensor/model_folder.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/tensor/safetensors.h"
#include "nlohmann/json.hpp"

namespace autoloco {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kConfigBytesMax = 1 << 20;
constexpr std::uint64_t kLayersMax = 1024;
constexpr std::uint64_t kExtentMax = 1 << 22;

// Reads numbers and switches out of the top level of a config; the first problem stays in status().
class ConfigReader {
 public:
  explicit ConfigReader(const Json& config) : config_(config) {}

  // A whole number from 1 to `max`. `fallback` 0: the key must be there.
  std::uint32_t Count(const char* key, std::uint64_t max, std::uint32_t fallback) {
    const Json* const value = Find(key);
    if (value == nullptr) {
      if (fallback == 0) Refuse(key, "is missing");
      return fallback;
    }
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() == 0 || value->get<std::uint64_t>() > max) {
      Refuse(key, absl::StrCat("want a whole number from 1 to ", max));
      return fallback;
    }
    return static_cast<std::uint32_t>(value->get<std::uint64_t>());
  }

  // A number above 0.
  double Number(const char* key, double fallback) {
    const Json* const value = Find(key);
    if (value == nullptr) return fallback;
    if (!value->is_number() || !(value->get<double>() > 0)) {
      Refuse(key, "want a number above 0");
      return fallback;
    }
    return value->get<double>();
  }

  bool Switch(const char* key, bool fallback) {
    const Json* const value = Find(key);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) Refuse(key, "want true or false");
    return value->is_boolean() ? value->get<bool>() : fallback;
  }

  // The key is absent, null or `want`.
  void Want(const char* key, const Json& want) {
    const Json* const value = Find(key);
    if (value != nullptr && *value != want) Refuse(key, absl::StrCat("want ", want.dump()));
  }

  const absl::Status& status() const { return status_; }

 private:
  const Json* Find(const char* key) const {
    const auto found = config_.find(key);
    return found == config_.end() || found->is_null() ? nullptr : &*found;
  }
  void Refuse(const char* key, const std::string& what) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(key, ": ", what));
  }

  const Json& config_;
  absl::Status status_;
};

absl::Status InFile(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

}  // namespace

std::string ModelConfigText(const DecoderShape& shape) {
  const nlohmann::ordered_json config = {
      {"architectures", {"LlamaForCausalLM"}},
      {"model_type", "llama"},
      {"vocab_size", shape.vocab_size},
      {"hidden_size", shape.width},
      {"intermediate_size", shape.mlp_hidden},
      {"num_hidden_layers", shape.layers},
      {"num_attention_heads", shape.heads},
      {"num_key_value_heads", shape.kv_heads},
      {"head_dim", shape.heads == 0 ? 0 : shape.width / shape.heads},
      {"max_position_embeddings", shape.context},
      {"tie_word_embeddings", shape.tied_head},
      {"rope_theta", shape.rope_theta},
      {"rope_scaling", nullptr},
      {"rms_norm_eps", shape.norm_epsilon},
      {"hidden_act", "silu"},
      {"attention_bias", false},
      {"mlp_bias", false},
      {"bos_token_id", nullptr},
      {"eos_token_id", nullptr},
      {"torch_dtype", "float32"},
  };
  return config.dump(2) + "\n";
}

absl::StatusOr<DecoderShape> ParseModelConfig(absl::string_view text) {
  const Json config = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return absl::InvalidArgumentError("want a JSON object");
  ConfigReader reader(config);
  reader.Want("model_type", "llama");
  reader.Want("hidden_act", "silu");
  reader.Want("attention_bias", false);
  reader.Want("mlp_bias", false);
  if (config.contains("rope_scaling") && !config["rope_scaling"].is_null()) {
    return absl::InvalidArgumentError("rope_scaling: scaled RoPE is not computed by this decoder; want null");
  }
  DecoderShape shape;
  shape.vocab_size = reader.Count("vocab_size", kExtentMax, 0);
  shape.width = reader.Count("hidden_size", kExtentMax, 0);
  shape.layers = reader.Count("num_hidden_layers", kLayersMax, 0);
  shape.heads = reader.Count("num_attention_heads", kExtentMax, 0);
  shape.kv_heads = reader.Count("num_key_value_heads", kExtentMax, shape.heads);
  shape.mlp_hidden = reader.Count("intermediate_size", kExtentMax, 0);
  shape.context = reader.Count("max_position_embeddings", UINT32_MAX, 2048);
  shape.tied_head = reader.Switch("tie_word_embeddings", false);
  shape.rope_theta = reader.Number("rope_theta", 10000);
  shape.norm_epsilon = reader.Number("rms_norm_eps", 1e-6);
  AUTOLOCO_RETURN_IF_ERROR(reader.status());
  reader.Want("head_dim", shape.width / shape.heads);
  AUTOLOCO_RETURN_IF_ERROR(reader.status());
  AUTOLOCO_RETURN_IF_ERROR(ValidateDecoderShape(shape));
  return shape;
}

absl::StatusOr<Model> ReadModelFolder(const std::string& folder) {
  const std::string config_path = absl::StrCat(folder, "/", kModelConfigFile);
  AUTOLOCO_ASSIGN_OR_RETURN(const std::string text, ReadFile(config_path, kConfigBytesMax));
  const absl::StatusOr<DecoderShape> shape = ParseModelConfig(text);
  if (!shape.ok()) return InFile(config_path, shape.status());
  absl::StatusOr<Layout> layout = MakeDecoderLayout(*shape);
  if (!layout.ok()) return InFile(config_path, layout.status());

  std::string path = absl::StrCat(folder, "/", kModelParamsFile);
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
  if (absl::IsNotFound(file.status())) {
    const std::string other = absl::StrCat(folder, "/", kHuggingFaceParamsFile);
    file = SafetensorsFile::Open(other);
    if (!absl::IsNotFound(file.status())) path = other;
  }
  if (absl::IsNotFound(file.status())) {
    return absl::NotFoundError(
        absl::StrCat(folder, ": neither ", kModelParamsFile, " nor ", kHuggingFaceParamsFile, " is there"));
  }
  AUTOLOCO_RETURN_IF_ERROR(file.status());

  // The memory is taken only once the file has that many values: config.json alone cannot size it.
  std::uint64_t stored = 0;
  for (const StoredTensor& tensor : file->tensors()) stored += tensor.count;
  if (stored != layout->value_count()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": holds ", stored, " values, the model of ", kModelConfigFile,
                                                   " has ", layout->value_count()));
  }
  AUTOLOCO_ASSIGN_OR_RETURN(FlatBuffer parameters, FlatBuffer::Allocate(layout->value_count()));
  AUTOLOCO_RETURN_IF_ERROR(LoadParameters(path, *layout, parameters.values()));
  return Model{*shape, *std::move(layout), std::move(parameters)};
}

}  // namespace autoloco
