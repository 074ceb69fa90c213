// The Llama-shaped decoder over views of two flat buffers: no tensor of the model owns memory. What an optimizer or a
// delta does to the flat vectors is done to the model, and backward adds into the flat gradient in place.
// Private to the torch_*.cc files: no other part of the tree sees a torch header.
#ifndef AUTOLOCO_WORKER_TRAIN_TORCH_DECODER_H_
#define AUTOLOCO_WORKER_TRAIN_TORCH_DECODER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "common/tensor/decoder.h"
#include "common/tensor/layout.h"

namespace autoloco::worker {

// Not thread-safe. Throws what torch throws: callers catch.
class TorchDecoder {
 public:
  // `values`: (layout.value_count()) fp32, kept alive by the views. `gradients`: the same shape on the same device, or
  // an undefined tensor for a model that is only read. REQUIRES: `layout` is MakeDecoderLayout(shape).
  TorchDecoder(const DecoderShape& shape, const Layout& layout, const at::Tensor& values, const at::Tensor& gradients);

  // tokens (rows, columns) i64 on the values' device -> logits (rows, columns, vocab) f32, of the token after each.
  // REQUIRES: 1 <= columns <= shape.context; every token below shape.vocab_size.
  at::Tensor Logits(const at::Tensor& tokens) const;

 private:
  // Matrices with the same input lie side by side in the layout, so each group is one view and one product.
  struct Block {
    at::Tensor attention_norm;    // (width)
    at::Tensor query_key_value;   // ((heads + 2 kv_heads) * head, width)
    at::Tensor attention_output;  // (width, heads * head)
    at::Tensor mlp_norm;          // (width)
    at::Tensor gate_up;           // (2 mlp_hidden, width)
    at::Tensor down;              // (width, mlp_hidden)
  };

  at::Tensor Attention(const Block& block, const at::Tensor& input) const;
  at::Tensor Mlp(const Block& block, const at::Tensor& input) const;
  at::Tensor Rotate(const at::Tensor& heads) const;
  at::Tensor Norm(const at::Tensor& input, const at::Tensor& weight) const;

  const DecoderShape shape_;
  const std::int64_t head_size_;
  at::Tensor embedding_;  // (vocab, width)
  std::vector<Block> blocks_;
  at::Tensor final_norm_;  // (width)
  at::Tensor head_;        // (vocab, width); the embedding itself when tied
  at::Tensor cosines_;     // (context, 1, head / 2) f32
  at::Tensor sines_;       // (context, 1, head / 2) f32
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_TRAIN_TORCH_DECODER_H_
