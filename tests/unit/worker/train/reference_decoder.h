// The decoder once more, straight from its formulas: plain loops in fp64, no tensor library, no shared code with the
// trainer. What the tests compare against, and what they differentiate numerically.
#ifndef AUTOLOCO_TESTS_UNIT_WORKER_TRAIN_REFERENCE_DECODER_H_
#define AUTOLOCO_TESTS_UNIT_WORKER_TRAIN_REFERENCE_DECODER_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/tensor/decoder.h"
#include "common/tensor/layout.h"

namespace autoloco::worker {

using Matrix = std::vector<std::vector<double>>;  // one row a position

class ReferenceDecoder {
 public:
  ReferenceDecoder(const DecoderShape& shape, const Layout& layout, const std::vector<double>& values)
      : shape_(shape), values_(values) {
    for (const TensorEntry& tensor : layout.tensors()) tensors_[tensor.spec.name] = tensor;
  }

  // Logits of the token after each of `tokens`.
  Matrix Logits(const std::vector<int>& tokens) const {
    Matrix stream;
    for (const int token : tokens) stream.push_back(Row("model.embed_tokens.weight", static_cast<std::size_t>(token)));
    for (std::uint32_t layer = 0; layer < shape_.layers; ++layer) {
      const std::string prefix = "model.layers." + std::to_string(layer) + ".";
      Add(Attention(prefix, Norm(stream, prefix + "input_layernorm.weight")), &stream);
      Add(Mlp(prefix, Norm(stream, prefix + "post_attention_layernorm.weight")), &stream);
    }
    const std::string head = shape_.tied_head ? "model.embed_tokens.weight" : "lm_head.weight";
    return Product(head, Norm(stream, "model.norm.weight"));
  }

  // Mean cross entropy of windows of C + 1 tokens.
  double Loss(const std::vector<std::vector<int>>& windows) const {
    double sum = 0;
    std::size_t count = 0;
    for (const std::vector<int>& window : windows) {
      const Matrix logits = Logits(std::vector<int>(window.begin(), window.end() - 1));
      for (std::size_t t = 0; t < logits.size(); ++t, ++count) {
        double total = 0;
        for (const double logit : logits[t]) total += std::exp(logit);
        sum += std::log(total) - logits[t][static_cast<std::size_t>(window[t + 1])];
      }
    }
    return sum / static_cast<double>(count);
  }

 private:
  std::vector<double> Row(const std::string& name, std::size_t row) const {
    const TensorEntry& tensor = tensors_.at(name);
    const std::size_t columns = tensor.spec.shape.back();
    const double* begin = values_.data() + tensor.offset + row * columns;
    return {begin, begin + columns};
  }

  static void Add(const Matrix& what, Matrix* to) {
    for (std::size_t t = 0; t < what.size(); ++t) {
      for (std::size_t i = 0; i < what[t].size(); ++i) (*to)[t][i] += what[t][i];
    }
  }

  // Every row times the transpose of the named matrix.
  Matrix Product(const std::string& name, const Matrix& rows) const {
    Matrix out(rows.size());
    for (std::size_t o = 0; o < tensors_.at(name).spec.shape[0]; ++o) {
      const std::vector<double> weights = Row(name, o);
      for (std::size_t t = 0; t < rows.size(); ++t) {
        double sum = 0;
        for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] * rows[t][i];
        out[t].push_back(sum);
      }
    }
    return out;
  }

  Matrix Norm(const Matrix& rows, const std::string& name) const {
    const std::vector<double> weights = Row(name, 0);
    Matrix out = rows;
    for (std::vector<double>& row : out) {
      double squares = 0;
      for (const double value : row) squares += value * value;
      const double scale = 1 / std::sqrt(squares / static_cast<double>(row.size()) + shape_.norm_epsilon);
      for (std::size_t i = 0; i < row.size(); ++i) row[i] *= scale * weights[i];
    }
    return out;
  }

  // Head `head` of position `t`, turned by the position: the pair (i, i + half) by t / theta^(2i / size).
  std::vector<double> Turned(const Matrix& rows, std::size_t t, std::size_t head) const {
    const std::size_t size = shape_.width / shape_.heads;
    std::vector<double> out(size);
    for (std::size_t i = 0; i < size / 2; ++i) {
      const double exponent = 2 * static_cast<double>(i) / static_cast<double>(size);
      const double angle = static_cast<double>(t) / std::pow(shape_.rope_theta, exponent);
      const double x = rows[t][head * size + i];
      const double y = rows[t][head * size + i + size / 2];
      out[i] = x * std::cos(angle) - y * std::sin(angle);
      out[i + size / 2] = y * std::cos(angle) + x * std::sin(angle);
    }
    return out;
  }

  Matrix Attention(const std::string& prefix, const Matrix& input) const {
    const Matrix queries = Product(prefix + "self_attn.q_proj.weight", input);
    const Matrix keys = Product(prefix + "self_attn.k_proj.weight", input);
    const Matrix values = Product(prefix + "self_attn.v_proj.weight", input);
    const std::size_t size = shape_.width / shape_.heads;
    Matrix mixed(input.size(), std::vector<double>(shape_.width, 0.0));
    for (std::size_t head = 0; head < shape_.heads; ++head) {
      const std::size_t kv_head = head / (shape_.heads / shape_.kv_heads);
      for (std::size_t t = 0; t < input.size(); ++t) {
        const std::vector<double> query = Turned(queries, t, head);
        std::vector<double> weights;
        double total = 0;
        for (std::size_t s = 0; s <= t; ++s) {
          const std::vector<double> key = Turned(keys, s, kv_head);
          double dot = 0;
          for (std::size_t i = 0; i < size; ++i) dot += query[i] * key[i];
          weights.push_back(std::exp(dot / std::sqrt(static_cast<double>(size))));
          total += weights.back();
        }
        for (std::size_t s = 0; s <= t; ++s) {
          for (std::size_t i = 0; i < size; ++i) {
            mixed[t][head * size + i] += weights[s] / total * values[s][kv_head * size + i];
          }
        }
      }
    }
    return Product(prefix + "self_attn.o_proj.weight", mixed);
  }

  Matrix Mlp(const std::string& prefix, const Matrix& input) const {
    Matrix gate = Product(prefix + "mlp.gate_proj.weight", input);
    const Matrix up = Product(prefix + "mlp.up_proj.weight", input);
    for (std::size_t t = 0; t < gate.size(); ++t) {
      for (std::size_t i = 0; i < gate[t].size(); ++i) gate[t][i] *= up[t][i] / (1 + std::exp(-gate[t][i]));
    }
    return Product(prefix + "mlp.down_proj.weight", gate);
  }

  const DecoderShape shape_;
  const std::vector<double>& values_;
  std::map<std::string, TensorEntry> tensors_;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_TESTS_UNIT_WORKER_TRAIN_REFERENCE_DECODER_H_
