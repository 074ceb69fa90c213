#include "tests/bench/learning/stacked_decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>
#include <utility>

#include "common/base/check.h"

namespace autoloco::bench {
namespace {

// input (models, rows, in), weight (models, out, in) -> (models, rows, out)
at::Tensor Linear(const at::Tensor& input, const at::Tensor& weight) { return at::bmm(input, weight.transpose(1, 2)); }

// Hands out the layout's tensors in order, as leaves that share the stacked buffers' memory.
class ViewCursor {
 public:
  ViewCursor(const Layout& layout, const at::Tensor& values, const at::Tensor& gradients)
      : layout_(layout), values_(values), gradients_(gradients) {}

  // The next `tensors` tensors of every model as one of (models, rows, columns).
  at::Tensor Matrix(std::size_t tensors, std::int64_t rows, std::int64_t columns) {
    return Next(tensors, rows * columns, {values_.size(0), rows, columns});
  }
  // The next tensor of every model as one of (models, size).
  at::Tensor Vector(std::int64_t size) { return Next(1, size, {values_.size(0), size}); }

  bool AtEnd() const { return next_ == layout_.tensors().size(); }

 private:
  at::Tensor Next(std::size_t tensors, std::int64_t count, at::IntArrayRef shape) {
    AUTOLOCO_CHECK(next_ + tensors <= layout_.tensors().size());
    const auto offset = static_cast<std::int64_t>(layout_.tensors()[next_].offset);
    next_ += tensors;
    at::Tensor leaf = values_.narrow(1, offset, count).view(shape).detach();
    leaf.set_requires_grad(true);
    leaf.mutable_grad() = gradients_.narrow(1, offset, count).view(shape);
    return leaf;
  }

  const Layout& layout_;
  const at::Tensor& values_;
  const at::Tensor& gradients_;
  std::size_t next_ = 0;
};

}  // namespace

StackedDecoder::StackedDecoder(const DecoderShape& shape, const Layout& layout, const at::Tensor& values,
                               const at::Tensor& gradients)
    : shape_(shape), head_size_(shape.width / shape.heads) {
  AUTOLOCO_CHECK(shape.kv_heads == shape.heads && shape.tied_head);
  const std::int64_t width = shape.width;
  const std::int64_t hidden = shape.mlp_hidden;
  ViewCursor cursor(layout, values, gradients);
  embedding_ = cursor.Matrix(1, shape.vocab_size, width);
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    Block block;
    block.attention_norm = cursor.Vector(width);
    block.query_key_value = cursor.Matrix(3, 3 * width, width);
    block.attention_output = cursor.Matrix(1, width, width);
    block.mlp_norm = cursor.Vector(width);
    block.gate_up = cursor.Matrix(2, 2 * hidden, width);
    block.down = cursor.Matrix(1, width, hidden);
    blocks_.push_back(std::move(block));
  }
  final_norm_ = cursor.Vector(width);
  AUTOLOCO_CHECK(cursor.AtEnd());

  MakeRotation();
  mask_ = at::full({std::int64_t{shape.context}, std::int64_t{shape.context}}, -std::numeric_limits<float>::infinity())
              .triu(1);
}

// Angles in fp64, rounded once: position p turns pair (i, i + head / 2) of every head by p / theta^(2i / head). Written
// as two products with wide rows: the form that splits heads works on rows of head / 2 values, at a tenth of the speed.
void StackedDecoder::MakeRotation() {
  const std::int64_t half = head_size_ / 2;
  const at::Tensor pair = at::arange(0, head_size_, 2, at::kDouble) / static_cast<double>(head_size_);
  const at::Tensor frequency = (pair * -std::log(shape_.rope_theta)).exp();
  const at::Tensor angle = at::outer(at::arange(std::int64_t{shape_.context}, at::kDouble), frequency);
  const std::int64_t halves = 4 * std::int64_t{shape_.heads};  // of queries and keys
  cosines_ = angle.cos().to(at::kFloat).repeat({1, halves});
  sines_ = angle.sin().to(at::kFloat).repeat({1, halves});
  const std::int64_t columns = halves * half;
  partner_ = at::zeros({columns, columns}, at::kFloat);
  for (std::int64_t head = 0; head < columns; head += head_size_) {
    for (std::int64_t i = head; i < head + half; ++i) {
      partner_.index_put_({at::tensor(i + half), at::tensor(i)}, at::tensor(-1.0F));
      partner_.index_put_({at::tensor(i), at::tensor(i + half)}, at::tensor(1.0F));
    }
  }
}

at::Tensor StackedDecoder::Logits(const at::Tensor& tokens) const {
  const std::int64_t models = tokens.size(0);
  const std::int64_t columns = tokens.size(2);
  const std::int64_t vocab = shape_.vocab_size;
  const at::Tensor first_row = (at::arange(models, at::kLong) * vocab).view({models, 1, 1});
  const at::Tensor table = embedding_.reshape({models * vocab, std::int64_t{shape_.width}});
  at::Tensor stream = at::embedding(table, (tokens + first_row).view({models, -1}));  // (models, rows, width)
  for (const Block& block : blocks_) {
    stream = stream + Attention(block, Norm(stream, block.attention_norm), columns);
    stream = stream + Mlp(block, Norm(stream, block.mlp_norm));
  }
  return Linear(Norm(stream, final_norm_), embedding_);
}

at::Tensor StackedDecoder::Attention(const Block& block, const at::Tensor& input, std::int64_t columns) const {
  const std::int64_t heads = shape_.heads;
  const std::int64_t width = shape_.width;
  const std::int64_t rows = input.size(0) * input.size(1) / columns;
  const std::vector<at::Tensor> parts =
      Linear(input, block.query_key_value).view({rows, columns, 3 * width}).split_with_sizes({2 * width, width}, 2);
  const std::vector<at::Tensor> rotated = Rotate(parts[0]).chunk(2, 2);
  const auto split = [&](const at::Tensor& all) {  // (rows * heads, columns, head)
    return all.reshape({rows, columns, heads, head_size_}).transpose(1, 2).reshape({-1, columns, head_size_});
  };
  const double scale = 1 / std::sqrt(static_cast<double>(head_size_));
  const at::Tensor mask = mask_.narrow(0, 0, columns).narrow(1, 0, columns);
  const at::Tensor scores = at::baddbmm(mask, split(rotated[0]), split(rotated[1]).transpose(1, 2), 1, scale);
  const at::Tensor mixed = at::bmm(scores.softmax(-1), split(parts[1])).view({rows, heads, columns, head_size_});
  return Linear(mixed.transpose(1, 2).reshape(input.sizes()), block.attention_output);
}

at::Tensor StackedDecoder::Mlp(const Block& block, const at::Tensor& input) const {
  const std::vector<at::Tensor> gate_up = Linear(input, block.gate_up).chunk(2, -1);
  return Linear(at::silu(gate_up[0]) * gate_up[1], block.down);
}

// queries_keys (rows, columns, 2 width)
at::Tensor StackedDecoder::Rotate(const at::Tensor& queries_keys) const {
  const std::int64_t columns = queries_keys.size(1);
  return queries_keys * cosines_.narrow(0, 0, columns) +
         at::matmul(queries_keys, partner_) * sines_.narrow(0, 0, columns);
}

at::Tensor StackedDecoder::Norm(const at::Tensor& input, const at::Tensor& weight) const {
  return at::rms_norm(input, {std::int64_t{shape_.width}}, {}, shape_.norm_epsilon) * weight.unsqueeze(1);
}

}  // namespace autoloco::bench
