#include "worker/train/torch_decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>

#include <cmath>
#include <optional>
#include <utility>

#include "common/base/check.h"

namespace autoloco::worker {
namespace {

// Hands out the layout's tensors in order, as leaves that share the flat buffers' memory.
class ViewCursor {
 public:
  ViewCursor(const Layout& layout, const at::Tensor& values, const at::Tensor& gradients)
      : layout_(layout), values_(values), gradients_(gradients) {}

  // The next `tensors` tensors as one of `shape`. REQUIRES: their values are as many as the shape has.
  at::Tensor Next(std::size_t tensors, at::IntArrayRef shape) {
    AUTOLOCO_CHECK(next_ + tensors <= layout_.tensors().size());
    const std::int64_t offset = static_cast<std::int64_t>(layout_.tensors()[next_].offset);
    std::int64_t count = 0;
    for (std::size_t i = 0; i < tensors; ++i) count += static_cast<std::int64_t>(layout_.tensors()[next_ + i].count);
    AUTOLOCO_CHECK(count == c10::multiply_integers(shape));
    next_ += tensors;
    at::Tensor leaf = values_.narrow(0, offset, count).view(shape).detach();
    if (gradients_.defined()) {
      leaf.set_requires_grad(true);
      leaf.mutable_grad() = gradients_.narrow(0, offset, count).view(shape);
    }
    return leaf;
  }

  bool AtEnd() const { return next_ == layout_.tensors().size(); }

 private:
  const Layout& layout_;
  const at::Tensor& values_;
  const at::Tensor& gradients_;
  std::size_t next_ = 0;
};

}  // namespace

TorchDecoder::TorchDecoder(const DecoderShape& shape, const Layout& layout, const at::Tensor& values,
                           const at::Tensor& gradients)
    : shape_(shape), head_size_(shape.width / shape.heads) {
  const std::int64_t vocab = shape.vocab_size;
  const std::int64_t width = shape.width;
  const std::int64_t hidden = shape.mlp_hidden;
  const std::int64_t attention_rows = (std::int64_t{shape.heads} + 2 * std::int64_t{shape.kv_heads}) * head_size_;
  ViewCursor cursor(layout, values, gradients);
  embedding_ = cursor.Next(1, {vocab, width});
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    Block block;
    block.attention_norm = cursor.Next(1, {width});
    block.query_key_value = cursor.Next(3, {attention_rows, width});
    block.attention_output = cursor.Next(1, {width, width});
    block.mlp_norm = cursor.Next(1, {width});
    block.gate_up = cursor.Next(2, {2 * hidden, width});
    block.down = cursor.Next(1, {width, hidden});
    blocks_.push_back(std::move(block));
  }
  final_norm_ = cursor.Next(1, {width});
  head_ = shape.tied_head ? embedding_ : cursor.Next(1, {vocab, width});
  AUTOLOCO_CHECK(cursor.AtEnd());

  // Angles in fp64, rounded once: position p turns pair i by p / theta^(2i / head).
  const at::Tensor pair = at::arange(0, head_size_, 2, at::kDouble) / static_cast<double>(head_size_);
  const at::Tensor frequency = (pair * -std::log(shape.rope_theta)).exp();
  const at::Tensor angle = at::outer(at::arange(std::int64_t{shape.context}, at::kDouble), frequency).unsqueeze(1);
  cosines_ = angle.cos().to(values.device(), at::kFloat);
  sines_ = angle.sin().to(values.device(), at::kFloat);
}

at::Tensor TorchDecoder::Logits(const at::Tensor& tokens) const {
  at::Tensor stream = at::embedding(embedding_, tokens);  // (rows, columns, width)
  for (const Block& block : blocks_) {
    stream = stream + Attention(block, Norm(stream, block.attention_norm));
    stream = stream + Mlp(block, Norm(stream, block.mlp_norm));
  }
  return at::linear(Norm(stream, final_norm_), head_);
}

at::Tensor TorchDecoder::Attention(const Block& block, const at::Tensor& input) const {
  const std::int64_t rows = input.size(0);
  const std::int64_t columns = input.size(1);
  const std::int64_t heads = shape_.heads;
  const std::int64_t kv_heads = shape_.kv_heads;
  // Splits, not slices: the backward of a split is one copy, that of slices a zero-filled tensor each.
  const std::vector<at::Tensor> parts = at::linear(input, block.query_key_value)
                                            .view({rows, columns, heads + 2 * kv_heads, head_size_})
                                            .split_with_sizes({heads + kv_heads, kv_heads}, 2);
  const std::vector<at::Tensor> rotated = Rotate(parts[0]).split_with_sizes({heads, kv_heads}, 2);
  const at::Tensor mixed = at::scaled_dot_product_attention(  // (rows, heads, columns, head)
      rotated[0].transpose(1, 2), rotated[1].transpose(1, 2), parts[1].transpose(1, 2), /*attn_mask=*/{},
      /*dropout_p=*/0, /*is_causal=*/true, /*scale=*/std::nullopt, /*enable_gqa=*/heads != kv_heads);
  return at::linear(mixed.transpose(1, 2).reshape({rows, columns, heads * head_size_}), block.attention_output);
}

at::Tensor TorchDecoder::Mlp(const Block& block, const at::Tensor& input) const {
  const std::vector<at::Tensor> gate_up = at::linear(input, block.gate_up).chunk(2, -1);
  return at::linear(at::silu(gate_up[0]) * gate_up[1], block.down);
}

// heads (rows, columns, any, head): the pair (i, i + head / 2) of every head turns by the position's angle.
at::Tensor TorchDecoder::Rotate(const at::Tensor& heads) const {
  const at::Tensor cosines = cosines_.narrow(0, 0, heads.size(1));
  const at::Tensor sines = sines_.narrow(0, 0, heads.size(1));
  const std::vector<at::Tensor> halves = heads.chunk(2, -1);
  return at::cat({halves[0] * cosines - halves[1] * sines, halves[1] * cosines + halves[0] * sines}, -1);
}

at::Tensor TorchDecoder::Norm(const at::Tensor& input, const at::Tensor& weight) const {
  return at::rms_norm(input, {std::int64_t{shape_.width}}, weight, shape_.norm_epsilon);
}

}  // namespace autoloco::worker
