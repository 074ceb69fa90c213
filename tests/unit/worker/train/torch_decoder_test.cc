#include "worker/train/torch_decoder.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "tests/unit/worker/train/reference_decoder.h"

namespace autoloco::worker {
namespace {

struct Case {
  std::string name;
  DecoderShape shape;
};

DecoderShape Shape(std::uint32_t heads, std::uint32_t kv_heads, bool tied_head) {
  return {.vocab_size = 11,
          .width = 8,
          .layers = 2,
          .heads = heads,
          .kv_heads = kv_heads,
          .mlp_hidden = 6,
          .context = 5,
          .tied_head = tied_head,
          .rope_theta = 100,
          .norm_epsilon = 1e-5};
}

class TorchDecoderTest : public ::testing::TestWithParam<Case> {
 protected:
  TorchDecoderTest() {
    // Large weights, so that no part of the model is nearly linear; norm weights differ from 1.
    const RandomStream random(5, 0);
    for (std::uint64_t i = 0; i < layout_.value_count(); ++i) {
      const bool norm = layout_.TensorAt(i).spec.shape.size() == 1;
      exact_.push_back(static_cast<float>(norm ? 1 + 0.2 * random.Normal(i) : 0.4 * random.Normal(i)));
    }
    values_.copy_(at::tensor(exact_, at::kDouble));
  }

  std::int64_t count() const { return static_cast<std::int64_t>(layout_.value_count()); }

  const DecoderShape shape_ = GetParam().shape;
  const Layout layout_ = MakeDecoderLayout(shape_).value();
  std::vector<double> exact_;  // values that fp32 holds exactly
  at::Tensor values_ = at::zeros({count()}, at::kFloat);
  at::Tensor gradients_ = at::zeros({count()}, at::kFloat);
  const std::vector<std::vector<int>> windows_ = {{3, 1, 4, 1, 5, 9}, {10, 0, 0, 7, 8, 7}};
};

TEST_P(TorchDecoderTest, LogitsEqualTheReference) {
  const ReferenceDecoder reference(shape_, layout_, exact_);
  const TorchDecoder decoder(shape_, layout_, values_, at::Tensor());
  for (const std::vector<int>& window : windows_) {
    const std::vector<std::int64_t> tokens(window.begin(), window.end() - 1);
    const at::Tensor logits = decoder.Logits(at::tensor(tokens, at::kLong).unsqueeze(0));
    const Matrix want = reference.Logits(std::vector<int>(window.begin(), window.end() - 1));
    ASSERT_EQ(logits.sizes(), (std::vector<std::int64_t>{1, 5, 11}));
    for (std::size_t t = 0; t < want.size(); ++t) {
      for (std::size_t v = 0; v < want[t].size(); ++v) {
        const double got = logits[0][static_cast<std::int64_t>(t)][static_cast<std::int64_t>(v)].item<double>();
        EXPECT_NEAR(got, want[t][v], 2e-5) << "position " << t << ", token " << v;
      }
    }
  }
}

// Every value of the flat gradient against a central difference of the fp64 reference. For a tied head this holds only
// if both uses of the embedding are summed.
TEST_P(TorchDecoderTest, GradientEqualsFiniteDifferences) {
  const TorchDecoder decoder(shape_, layout_, values_, gradients_);
  std::vector<std::int64_t> inputs, targets;
  for (const std::vector<int>& window : windows_) {
    inputs.insert(inputs.end(), window.begin(), window.end() - 1);
    targets.insert(targets.end(), window.begin() + 1, window.end());
  }
  const at::Tensor logits = decoder.Logits(at::tensor(inputs, at::kLong).view({2, 5}));
  const at::Tensor loss = at::cross_entropy_loss(logits.view({-1, 11}), at::tensor(targets, at::kLong));
  loss.backward();
  ReferenceDecoder reference(shape_, layout_, exact_);
  EXPECT_NEAR(loss.item<double>(), reference.Loss(windows_), 1e-5);
  const float* const gradient = gradients_.const_data_ptr<float>();
  constexpr double kStep = 1e-5;
  for (std::size_t i = 0; i < exact_.size(); ++i) {
    const double value = exact_[i];
    exact_[i] = value + kStep;
    const double above = reference.Loss(windows_);
    exact_[i] = value - kStep;
    const double below = reference.Loss(windows_);
    exact_[i] = value;
    EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 2e-5) << layout_.TensorAt(i).spec.name << ", value " << i;
  }
}

TEST_P(TorchDecoderTest, BackwardAddsInPlace) {
  const TorchDecoder decoder(shape_, layout_, values_, gradients_);
  const at::Tensor tokens = at::tensor(std::vector<std::int64_t>{1, 2, 3}, at::kLong).unsqueeze(0);
  decoder.Logits(tokens).sum().backward();
  const at::Tensor once = gradients_.clone();
  decoder.Logits(tokens).sum().backward();
  EXPECT_TRUE(gradients_.allclose(once.mul(2), 1e-5, 1e-4));
  EXPECT_GT(once.abs().max().item<double>(), 0.1);
}

INSTANTIATE_TEST_SUITE_P(Shapes, TorchDecoderTest,
                         ::testing::Values(Case{"Tied", Shape(2, 2, true)}, Case{"Untied", Shape(2, 2, false)},
                                           Case{"Grouped", Shape(4, 2, true)},
                                           Case{"OneKeyHeadUntied", Shape(4, 1, false)}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace autoloco::worker
