// A model as a folder in Hugging Face's form: config.json (LlamaConfig) beside the parameters as safetensors.
// Checkpoints are such folders; so is a model that somebody downloaded.
#ifndef AUTOLOCO_COMMON_TENSOR_MODEL_FOLDER_H_
#define AUTOLOCO_COMMON_TENSOR_MODEL_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/flat_buffer.h"
#include "common/tensor/decoder.h"
#include "common/tensor/layout.h"

namespace autoloco {

inline constexpr char kModelConfigFile[] = "config.json";
inline constexpr char kModelParamsFile[] = "params.safetensors";
inline constexpr char kHuggingFaceParamsFile[] = "model.safetensors";

// The text of config.json for a LlamaForCausalLM of this shape; ends with a newline.
std::string ModelConfigText(const DecoderShape& shape);

// The shape that a config.json describes. INVALID_ARGUMENT naming the key: not JSON, a key missing or of the wrong
// type, a number out of range, or a variant this decoder does not compute (another model_type or activation, biases,
// scaled RoPE, another head size). Keys that may be missing take Hugging Face's defaults; unknown keys are ignored.
absl::StatusOr<DecoderShape> ParseModelConfig(absl::string_view text);

struct Model {
  DecoderShape shape;
  Layout layout;          // MakeDecoderLayout(shape)
  FlatBuffer parameters;  // layout order
};

// Reads config.json and params.safetensors (or, where there is none, model.safetensors) of `folder`. Errors name the
// file: as ParseModelConfig and LoadParameters, NOT_FOUND for a file that is missing, RESOURCE_EXHAUSTED for memory.
absl::StatusOr<Model> ReadModelFolder(const std::string& folder);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_TENSOR_MODEL_FOLDER_H_
