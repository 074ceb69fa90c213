#include "common/tensor/decoder.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"

namespace autoloco {
namespace {

constexpr std::uint64_t kTensorsPerLayer = 9;

absl::Status Refuse(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("decoder shape: ", what));
}

void AppendLayer(const DecoderShape& shape, std::uint32_t layer, std::vector<TensorSpec>* tensors) {
  const std::string prefix = absl::StrCat("model.layers.", layer, ".");
  const std::uint64_t width = shape.width;
  const std::uint64_t hidden = shape.mlp_hidden;
  const std::uint64_t head = shape.width / shape.heads;
  const std::uint64_t kv_width = shape.kv_heads * head;
  tensors->push_back({prefix + "input_layernorm.weight", {width}});
  tensors->push_back({prefix + "self_attn.q_proj.weight", {shape.heads * head, width}});
  tensors->push_back({prefix + "self_attn.k_proj.weight", {kv_width, width}});
  tensors->push_back({prefix + "self_attn.v_proj.weight", {kv_width, width}});
  tensors->push_back({prefix + "self_attn.o_proj.weight", {width, shape.heads * head}});
  tensors->push_back({prefix + "post_attention_layernorm.weight", {width}});
  tensors->push_back({prefix + "mlp.gate_proj.weight", {hidden, width}});
  tensors->push_back({prefix + "mlp.up_proj.weight", {hidden, width}});
  tensors->push_back({prefix + "mlp.down_proj.weight", {width, hidden}});
}

// N(0, init_std^2), one stream a tensor: values 2k and 2k + 1 are pair k of the stream (seed, XXH3-64 of the name).
void FillNormal(std::uint64_t seed, const std::string& name, double init_std, std::span<float> values) {
  const RandomStream stream(seed, Hash64(std::as_bytes(std::span<const char>(name))));
  for (std::size_t i = 0; i < values.size(); i += 2) {
    const auto [even, odd] = stream.NormalPair(i / 2);
    values[i] = static_cast<float>(init_std * even);
    if (i + 1 < values.size()) values[i + 1] = static_cast<float>(init_std * odd);
  }
}

}  // namespace

absl::Status ValidateDecoderShape(const DecoderShape& shape) {
  const std::pair<const char*, std::uint32_t> numbers[] = {
      {"vocab_size", shape.vocab_size}, {"width", shape.width},       {"layers", shape.layers},
      {"heads", shape.heads},           {"kv_heads", shape.kv_heads}, {"mlp_hidden", shape.mlp_hidden},
      {"context", shape.context}};
  for (const auto& [name, value] : numbers) {
    if (value == 0) return Refuse(absl::StrCat(name, " must be at least 1, got 0"));
  }
  if (shape.width % shape.heads != 0) {
    return Refuse(absl::StrCat("width must be a multiple of heads, got width ", shape.width, ", heads ", shape.heads));
  }
  if ((shape.width / shape.heads) % 2 != 0) {
    return Refuse(
        absl::StrCat("the head size width / heads must be even (rotary positions), got ", shape.width / shape.heads));
  }
  if (shape.heads % shape.kv_heads != 0) {
    return Refuse(absl::StrCat("kv_heads must divide heads, got heads ", shape.heads, ", kv_heads ", shape.kv_heads));
  }
  if (!std::isfinite(shape.rope_theta) || shape.rope_theta <= 0) {
    return Refuse(absl::StrCat("rope_theta must be positive, got ", shape.rope_theta));
  }
  if (!std::isfinite(shape.norm_epsilon) || shape.norm_epsilon <= 0) {
    return Refuse(absl::StrCat("norm_epsilon must be positive, got ", shape.norm_epsilon));
  }
  return absl::OkStatus();
}

absl::StatusOr<Layout> MakeDecoderLayout(const DecoderShape& shape) {
  AUTOLOCO_RETURN_IF_ERROR(ValidateDecoderShape(shape));
  if (shape.layers > Layout::kTensorsMax / (kTensorsPerLayer + 1)) {
    return Refuse(absl::StrCat("too many layers: ", shape.layers));
  }
  std::vector<TensorSpec> tensors;
  tensors.reserve(shape.layers * kTensorsPerLayer + 3);
  tensors.push_back({"model.embed_tokens.weight", {shape.vocab_size, shape.width}});
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) AppendLayer(shape, layer, &tensors);
  tensors.push_back({"model.norm.weight", {shape.width}});
  if (!shape.tied_head) tensors.push_back({"lm_head.weight", {shape.vocab_size, shape.width}});
  return Layout::Make(std::move(tensors));
}

void InitializeParameters(const Layout& layout, std::uint64_t seed, double init_std, std::span<float> values) {
  AUTOLOCO_CHECK(values.size() == layout.value_count());
  for (const TensorEntry& tensor : layout.tensors()) {
    const std::span<float> part = values.subspan(tensor.offset, tensor.count);
    if (tensor.spec.shape.size() == 1) {
      for (float& value : part) value = 1.0f;
    } else {
      FillNormal(seed, tensor.spec.name, init_std, part);
    }
  }
}

}  // namespace autoloco
