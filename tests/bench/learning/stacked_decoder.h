// The product's decoder (worker/train/torch_decoder.h) for several models at once: the same shape, layout and
// mathematics, with every product batched over the models. Small models spend most of their time outside the
// arithmetic; side by side they share it.
#ifndef AUTOLOCO_TESTS_BENCH_LEARNING_STACKED_DECODER_H_
#define AUTOLOCO_TESTS_BENCH_LEARNING_STACKED_DECODER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "common/tensor/decoder.h"
#include "common/tensor/layout.h"

namespace autoloco::bench {

// Not thread-safe. Throws what torch throws: callers catch.
class StackedDecoder {
 public:
  // values, gradients: (models, layout.value_count()) f32, contiguous; the decoder keeps views, and backward adds into
  // `gradients`. REQUIRES: `layout` is MakeDecoderLayout(shape), as many key-value heads as heads, a tied head.
  StackedDecoder(const DecoderShape& shape, const Layout& layout, const at::Tensor& values,
                 const at::Tensor& gradients);

  // tokens (models, rows, columns) i64 -> logits (models, rows * columns, vocab) f32, of the token after each.
  // REQUIRES: columns <= shape.context.
  at::Tensor Logits(const at::Tensor& tokens) const;

 private:
  struct Block {
    at::Tensor attention_norm;    // (models, width)
    at::Tensor query_key_value;   // (models, 3 width, width)
    at::Tensor attention_output;  // (models, width, width)
    at::Tensor mlp_norm;          // (models, width)
    at::Tensor gate_up;           // (models, 2 mlp_hidden, width)
    at::Tensor down;              // (models, width, mlp_hidden)
  };

  void MakeRotation();
  at::Tensor Attention(const Block& block, const at::Tensor& input, std::int64_t columns) const;
  at::Tensor Mlp(const Block& block, const at::Tensor& input) const;
  at::Tensor Rotate(const at::Tensor& queries_keys) const;
  at::Tensor Norm(const at::Tensor& input, const at::Tensor& weight) const;

  const DecoderShape shape_;
  const std::int64_t head_size_;
  at::Tensor embedding_;  // (models, vocab, width)
  std::vector<Block> blocks_;
  at::Tensor final_norm_;  // (models, width)
  at::Tensor cosines_;     // (context, 2 width): for queries and keys of all heads side by side
  at::Tensor sines_;       // idem
  at::Tensor partner_;     // (2 width, 2 width): x partner_ is, for each pair (x_i, x_j), (-x_j, x_i)
  at::Tensor mask_;        // (context, context): 0 up to the diagonal, minus infinity above
};

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_LEARNING_STACKED_DECODER_H_
