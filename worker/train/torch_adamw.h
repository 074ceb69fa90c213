// AdamW over flat buffers: LibTorch's fused operator on the runs of neighbouring tensors that decay alike.
// Private to the torch_*.cc files.
#ifndef AUTOLOCO_WORKER_TRAIN_TORCH_ADAMW_H_
#define AUTOLOCO_WORKER_TRAIN_TORCH_ADAMW_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "common/tensor/layout.h"
#include "worker/train/inner_config.h"

namespace autoloco::worker {

// As torch.optim.AdamW: m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; theta -= lr wd theta;
// theta -= lr (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps), all fp32; wd only on tensors of two or more dimensions.
// Not thread-safe. Throws what torch throws.
class TorchAdamW {
 public:
  // Both flat, (layout.value_count()) fp32 on one device; kept alive. The moments start at 0, on the same device.
  TorchAdamW(const AdamWConfig& config, const Layout& layout, const at::Tensor& values, const at::Tensor& gradients);

  // The global norm of the gradient: fp32 norms of 4,096 values, their squares summed in fp64. Not finite when a value
  // is not.
  double GradientNorm() const;

  // One update with the gradient as it stands, scaled down to clip_norm (given its norm) first.
  // REQUIRES: gradient_norm is finite.
  void Step(double gradient_norm, double learning_rate);

  // The state, borrowed: copy into it or out of it.
  at::Tensor& first_moment() { return first_moment_; }
  at::Tensor& second_moment() { return second_moment_; }
  at::Tensor& step_count() { return step_count_; }  // () f32: whole numbers up to 2^24

 private:
  struct Group {
    double weight_decay;
    std::vector<at::Tensor> values, gradients, first_moments, second_moments, step_counts;  // one a run
  };
  void Update(const Group& group, double learning_rate);

  const AdamWConfig config_;
  const at::Tensor gradient_;
  at::Tensor first_moment_;   // flat
  at::Tensor second_moment_;  // flat
  at::Tensor step_count_;     // () f32, shared by all runs
  Group decayed_;
  Group plain_;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_TRAIN_TORCH_ADAMW_H_
