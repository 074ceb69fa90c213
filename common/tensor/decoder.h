// The decoder's shape, its layout and its initial parameters: known to server and worker alike, without LibTorch.
#ifndef AUTOLOCO_COMMON_TENSOR_DECODER_H_
#define AUTOLOCO_COMMON_TENSOR_DECODER_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "common/tensor/layout.h"

namespace autoloco {

// A Llama-shaped decoder: RMSNorm, RoPE (rotate-half form), SwiGLU, grouped-query attention, no biases.
// ModelConfig of run_config.proto says what each number means.
struct DecoderShape {
  std::uint32_t vocab_size = 0;
  std::uint32_t width = 0;
  std::uint32_t layers = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t mlp_hidden = 0;
  std::uint32_t context = 0;
  bool tied_head = true;
  double rope_theta = 10000;
  double norm_epsilon = 1e-5;

  bool operator==(const DecoderShape&) const = default;
};

// INVALID_ARGUMENT naming the numbers when they do not fit: width not a multiple of heads, odd head size, kv_heads not
// dividing heads, a zero.
absl::Status ValidateDecoderShape(const DecoderShape& shape);

// Tensors in Hugging Face's names and order: model.embed_tokens.weight (vocab, width); for each layer n
// model.layers.n.{input_layernorm.weight (width), self_attn.q_proj.weight (heads*head, width), self_attn.k_proj.weight
// (kv_heads*head, width), self_attn.v_proj.weight (idem), self_attn.o_proj.weight (width, heads*head),
// post_attention_layernorm.weight (width), mlp.gate_proj.weight (mlp_hidden, width), mlp.up_proj.weight (idem),
// mlp.down_proj.weight (width, mlp_hidden)}; model.norm.weight (width); lm_head.weight (vocab, width) unless tied.
absl::StatusOr<Layout> MakeDecoderLayout(const DecoderShape& shape);

// Fills `values` (fp32, layout order): one-dimensional tensors (norm weights) with 1, the others from
// N(0, init_std^2). Every tensor draws from a stream of its own (seed, tensor name), so that adding a layer does not
// change the others. REQUIRES: values.size() == layout.value_count().
void InitializeParameters(const Layout& layout, std::uint64_t seed, double init_std, std::span<float> values);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_TENSOR_DECODER_H_
