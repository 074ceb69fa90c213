#include "worker/train/torch_adamw.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <cstdint>

namespace autoloco::worker {

TorchAdamW::TorchAdamW(const AdamWConfig& config, const Layout& layout, const at::Tensor& values,
                       const at::Tensor& gradients)
    : config_(config),
      gradient_(gradients),
      first_moment_(at::zeros_like(values)),
      second_moment_(at::zeros_like(values)),
      step_count_(at::zeros({}, values.options())),
      decayed_{config.weight_decay, {}, {}, {}, {}, {}},
      plain_{0, {}, {}, {}, {}, {}} {
  const std::vector<TensorEntry>& tensors = layout.tensors();
  for (std::size_t begin = 0; begin < tensors.size();) {
    const bool decays = tensors[begin].spec.shape.size() >= 2;
    std::size_t end = begin;
    std::int64_t count = 0;
    for (; end < tensors.size() && (tensors[end].spec.shape.size() >= 2) == decays; ++end) {
      count += static_cast<std::int64_t>(tensors[end].count);
    }
    const std::int64_t offset = static_cast<std::int64_t>(tensors[begin].offset);
    Group& group = decays ? decayed_ : plain_;
    group.values.push_back(values.narrow(0, offset, count));
    group.gradients.push_back(gradients.narrow(0, offset, count));
    group.first_moments.push_back(first_moment_.narrow(0, offset, count));
    group.second_moments.push_back(second_moment_.narrow(0, offset, count));
    group.step_counts.push_back(step_count_);
    begin = end;
  }
}

double TorchAdamW::GradientNorm() const {
  constexpr std::int64_t kChunk = 4096;
  const std::int64_t chunks = gradient_.numel() / kChunk;
  const at::Tensor whole = gradient_.narrow(0, 0, chunks * kChunk).view({chunks, kChunk});
  const at::Tensor rest = gradient_.narrow(0, chunks * kChunk, gradient_.numel() - chunks * kChunk).unsqueeze(0);
  const at::Tensor norms = at::cat({at::linalg_vector_norm(whole, 2, {1}), at::linalg_vector_norm(rest, 2, {1})});
  return std::sqrt(norms.to(at::kDouble).square().sum().item<double>());
}

void TorchAdamW::Step(double gradient_norm, double learning_rate) {
  if (config_.clip_norm > 0) {
    const double scale = config_.clip_norm / (gradient_norm + 1e-6);  // as torch.nn.utils.clip_grad_norm_
    if (scale < 1) gradient_.mul_(scale);
  }
  step_count_.add_(1);
  Update(decayed_, learning_rate);
  Update(plain_, learning_rate);
}

void TorchAdamW::Update(const Group& group, double learning_rate) {
  if (group.values.empty()) return;
  at::_fused_adamw_(group.values, group.gradients, group.first_moments, group.second_moments,
                    /*max_exp_avg_sqs=*/{}, group.step_counts, learning_rate, config_.beta1, config_.beta2,
                    group.weight_decay, config_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
}

}  // namespace autoloco::worker
