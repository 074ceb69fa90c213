// The flat AdamW and the whole trainer against LibTorch's own per-tensor optimizer and clipping.
#include "worker/train/torch_adamw.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "common/tensor/decoder.h"
#include "worker/train/torch_decoder.h"
#include "worker/train/torch_trainer.h"

namespace autoloco::worker {
namespace {

constexpr DecoderShape kShape = {.vocab_size = 19,
                                 .width = 16,
                                 .layers = 2,
                                 .heads = 2,
                                 .kv_heads = 1,
                                 .mlp_hidden = 24,
                                 .context = 8,
                                 .tied_head = true};
constexpr int kSteps = 20;

double LearningRate(int step) { return 1e-2 / (1 + step); }

// LibTorch's optimizer over one leaf a tensor of the layout, in two groups: matrices decay, vectors do not.
class PerTensorAdamW {
 public:
  PerTensorAdamW(const AdamWConfig& config, const Layout& layout, const at::Tensor& values,
                 const at::Tensor& gradients) {
    std::vector<at::Tensor> matrices, vectors;
    for (const TensorEntry& tensor : layout.tensors()) {
      const auto offset = static_cast<std::int64_t>(tensor.offset);
      const auto count = static_cast<std::int64_t>(tensor.count);
      at::Tensor leaf = values.narrow(0, offset, count).detach();
      leaf.set_requires_grad(true);
      leaf.mutable_grad() = gradients.narrow(0, offset, count);
      all_.push_back(leaf);
      (tensor.spec.shape.size() == 1 ? vectors : matrices).push_back(leaf);
    }
    torch::optim::AdamWOptions options;
    options.betas({config.beta1, config.beta2}).eps(config.epsilon).weight_decay(config.weight_decay);
    torch::optim::AdamWOptions plain(options);
    plain.weight_decay(0);
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(matrices, std::make_unique<torch::optim::AdamWOptions>(options));
    groups.emplace_back(vectors, std::make_unique<torch::optim::AdamWOptions>(plain));
    optimizer_ = std::make_unique<torch::optim::AdamW>(groups, options);
  }

  double Clip(double norm) { return torch::nn::utils::clip_grad_norm_(all_, norm); }

  void Step(double learning_rate) {
    for (torch::optim::OptimizerParamGroup& group : optimizer_->param_groups()) group.options().set_lr(learning_rate);
    optimizer_->step();
  }

 private:
  std::vector<at::Tensor> all_;
  std::unique_ptr<torch::optim::AdamW> optimizer_;
};

class TorchAdamWTest : public ::testing::Test {
 protected:
  TorchAdamWTest() {
    torch::manual_seed(3);
    start_ = torch::randn({count()}) * 0.1;
  }
  std::int64_t count() const { return static_cast<std::int64_t>(layout_.value_count()); }

  const Layout layout_ = MakeDecoderLayout(kShape).value();
  at::Tensor start_;
};

TEST_F(TorchAdamWTest, EqualsThePerTensorOptimizerStepForStep) {
  const AdamWConfig config{.clip_norm = 0};
  at::Tensor values = start_.clone(), want = start_.clone(), gradients = torch::zeros({count()});
  TorchAdamW flat(config, layout_, values, gradients);
  PerTensorAdamW per_tensor(config, layout_, want, gradients);
  for (int step = 0; step < kSteps; ++step) {
    gradients.copy_(torch::randn({count()}) * std::pow(10.0, step % 5 - 2));
    flat.Step(flat.GradientNorm(), LearningRate(step));
    per_tensor.Step(LearningRate(step));
    ASSERT_LE((values - want).abs().max().item<double>(), 1e-6) << "step " << step;
  }
  EXPECT_GT((values - start_).abs().min().item<double>(), 0);
}

TEST_F(TorchAdamWTest, DecaysMatricesOnly) {
  const AdamWConfig config{.weight_decay = 0.5, .clip_norm = 0};
  at::Tensor values = torch::ones({count()}), gradients = torch::zeros({count()});
  TorchAdamW(config, layout_, values, gradients).Step(0, 0.1);
  for (const TensorEntry& tensor : layout_.tensors()) {
    const double got = values[static_cast<std::int64_t>(tensor.offset)].item<double>();
    EXPECT_NEAR(got, tensor.spec.shape.size() == 1 ? 1 : 0.95, 1e-6) << tensor.spec.name;
  }
}

TEST_F(TorchAdamWTest, ClipsToTheGlobalNorm) {
  const AdamWConfig config{.clip_norm = 0.5};
  at::Tensor values = start_.clone(), gradients = torch::randn({count()});
  TorchAdamW optimizer(config, layout_, values, gradients);
  const double norm = optimizer.GradientNorm();
  EXPECT_NEAR(norm, gradients.to(torch::kDouble).norm().item<double>(), 1e-4);
  optimizer.Step(norm, 0.1);
  EXPECT_NEAR(optimizer.GradientNorm(), 0.5, 1e-5);
  gradients.mul_(0.5);  // below the norm: untouched
  const at::Tensor small = gradients.clone();
  optimizer.Step(optimizer.GradientNorm(), 0.1);
  EXPECT_TRUE(gradients.equal(small));
}

TEST_F(TorchAdamWTest, GradientNormIsExactOnLongVectorsAndSeesNan) {
  constexpr std::int64_t kCount = 3 * 65536 + 17;
  const Layout layout = Layout::Make({{"long", {kCount}}}).value();
  at::Tensor values = torch::zeros({kCount}), gradients = torch::full({kCount}, 0.1f);
  gradients[kCount - 1] = 3;
  TorchAdamW optimizer({}, layout, values, gradients);
  const double tenth = 0.1f;
  EXPECT_NEAR(optimizer.GradientNorm(), std::sqrt((kCount - 1) * tenth * tenth + 9), 1e-4);
  gradients[70000] = std::nan("");
  EXPECT_TRUE(std::isnan(optimizer.GradientNorm()));
}

// The whole trainer: same model, same batches, LibTorch's clipping and optimizer tensor by tensor.
TEST_F(TorchAdamWTest, TrainerEqualsThePerTensorLoop) {
  const AdamWConfig config{.weight_decay = 0.2, .clip_norm = 0.05};
  auto trainer = MakeTorchTrainer(kShape, config, {.device = "cpu", .threads = 1});
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  std::vector<float> got(layout_.value_count());
  ASSERT_TRUE((*trainer)->SetParameters({start_.const_data_ptr<float>(), got.size()}).ok());

  at::Tensor values = start_.clone(), gradients = torch::zeros({count()});
  const TorchDecoder decoder(kShape, layout_, values, gradients);
  PerTensorAdamW per_tensor(config, layout_, values, gradients);
  int clipped = 0;
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor tokens = torch::randint(0, 19, {3, 9}, torch::kInt32);
    const auto result = (*trainer)->Step({{tokens.const_data_ptr<std::int32_t>(), 27}, 3, 9}, LearningRate(step));
    ASSERT_TRUE(result.ok()) << result.status();

    gradients.zero_();
    const at::Tensor loss =
        torch::nn::functional::cross_entropy(decoder.Logits(tokens.narrow(1, 0, 8).to(torch::kLong)).view({24, 19}),
                                             tokens.narrow(1, 1, 8).reshape({24}).to(torch::kLong));
    loss.backward();
    const double norm = per_tensor.Clip(config.clip_norm);
    per_tensor.Step(LearningRate(step));
    clipped += norm > config.clip_norm;

    EXPECT_NEAR(result->loss, loss.item<double>(), 1e-6);
    EXPECT_NEAR(result->gradient_norm, norm, 1e-5);
    ASSERT_TRUE((*trainer)->GetParameters(got).ok());
    ASSERT_LE((torch::tensor(got) - values).abs().max().item<double>(), 1e-6) << "step " << step;
  }
  EXPECT_GT(clipped, 0);
}

}  // namespace
}  // namespace autoloco::worker
