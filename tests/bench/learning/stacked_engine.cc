#include "tests/bench/learning/stacked_engine.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "tests/bench/learning/stacked_decoder.h"
#include "worker/train/torch_adamw.h"
#include "worker/train/torch_status.h"

namespace autoloco::bench {
namespace {

using worker::CatchTorch;

// Backward warns once that gradients which are views of a larger buffer may be slow to add to. Here they are as wide as
// they need to be.
class NoWarnings final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& /*warning*/) override {}
};

class TorchStackedEngine final : public StackedEngine {
 public:
  TorchStackedEngine(const DecoderShape& shape, Layout layout, const worker::AdamWConfig& config, std::uint32_t models)
      : shape_(shape),
        layout_(std::move(layout)),
        config_(config),
        values_(at::zeros({models, ValueCount()}, at::kFloat)),
        gradients_(at::zeros({models, ValueCount()}, at::kFloat)),
        decoder_(shape_, layout_, values_, gradients_),
        optimizers_(models) {
    for (std::uint32_t model = 0; model < models; ++model) MakeOptimizer(model);
  }

  std::uint32_t models() const override { return static_cast<std::uint32_t>(optimizers_.size()); }
  const Layout& layout() const override { return layout_; }

  absl::Status SetParameters(std::uint32_t model, std::span<const float> values) override {
    return CatchTorch("setting parameters", [&] {
      const at::NoGradGuard no_grad;
      values_[model].copy_(Borrow(values));
      return absl::OkStatus();
    });
  }

  absl::Status GetParameters(std::uint32_t model, std::span<float> values) override {
    return CatchTorch("reading parameters", [&] {
      const at::NoGradGuard no_grad;
      Borrow(values).copy_(values_[model]);
      return absl::OkStatus();
    });
  }

  absl::Status ResetOptimizer(std::uint32_t model) override {
    return CatchTorch("resetting AdamW", [&] {
      MakeOptimizer(model);
      return absl::OkStatus();
    });
  }

  absl::StatusOr<std::vector<ModelStep>> Step(std::span<const std::int32_t> tokens,
                                              std::span<const double> learning_rates) override {
    AUTOLOCO_CHECK(learning_rates.size() == models());
    return CatchTorch("training step", [&]() -> absl::StatusOr<std::vector<ModelStep>> {
      const c10::WarningUtils::WarningHandlerGuard quiet(&no_warnings_);
      gradients_.zero_();
      const at::Tensor losses = Losses(tokens).view({models(), -1}).mean(1);
      losses.sum().backward();  // the models share nothing: each gets the gradient of its own loss
      const at::NoGradGuard no_grad;
      std::vector<ModelStep> steps(models());
      for (std::uint32_t model = 0; model < models(); ++model) {
        steps[model] = {losses[model].item<double>(), optimizers_[model]->GradientNorm()};
        if (!std::isfinite(steps[model].gradient_norm)) {
          return absl::OutOfRangeError(absl::StrCat("model ", model, ": the gradient is not finite, the run diverged"));
        }
        if (learning_rates[model] > 0) optimizers_[model]->Step(steps[model].gradient_norm, learning_rates[model]);
      }
      return steps;
    });
  }

  absl::StatusOr<double> LossSum(std::span<const std::int32_t> tokens) override {
    return CatchTorch("evaluation", [&]() -> absl::StatusOr<double> {
      const at::NoGradGuard no_grad;
      return Losses(tokens).to(at::kDouble).sum().item<double>();
    });
  }

 private:
  std::int64_t ValueCount() const { return static_cast<std::int64_t>(layout_.value_count()); }

  at::Tensor Borrow(std::span<const float> values) const {
    AUTOLOCO_CHECK(values.size() == layout_.value_count());
    return at::from_blob(const_cast<float*>(values.data()), {ValueCount()}, at::kFloat);  // NOLINT: the caller knows
  }

  void MakeOptimizer(std::uint32_t model) {
    optimizers_[model].emplace(config_, layout_, values_[model], gradients_[model]);
  }

  // Cross entropy of every column but the first, given those before it: (models * rows * context).
  at::Tensor Losses(std::span<const std::int32_t> tokens) const {
    const std::int64_t columns = std::int64_t{shape_.context} + 1;
    const std::int64_t rows = static_cast<std::int64_t>(tokens.size()) / (columns * models());
    AUTOLOCO_CHECK(rows > 0 && tokens.size() == static_cast<std::size_t>(rows * columns * models()));
    const at::Tensor all = at::from_blob(const_cast<std::int32_t*>(tokens.data()),  // NOLINT: only read
                                         {models(), rows, columns}, at::kInt)
                               .to(at::kLong);
    const at::Tensor logits = decoder_.Logits(all.narrow(2, 0, columns - 1));
    const at::Tensor targets = all.narrow(2, 1, columns - 1).reshape({-1});
    return at::cross_entropy_loss(logits.view({-1, std::int64_t{shape_.vocab_size}}), targets, {}, at::Reduction::None);
  }

  const DecoderShape shape_;
  const Layout layout_;
  const worker::AdamWConfig config_;
  at::Tensor values_;     // (models, value_count)
  at::Tensor gradients_;  // (models, value_count)
  const StackedDecoder decoder_;
  NoWarnings no_warnings_;
  std::vector<std::optional<worker::TorchAdamW>> optimizers_;  // never empty
};

}  // namespace

absl::StatusOr<std::unique_ptr<StackedEngine>> StackedEngine::Make(const DecoderShape& shape,
                                                                   const worker::AdamWConfig& config,
                                                                   std::uint32_t models) {
  if (models == 0 || shape.kv_heads != shape.heads || !shape.tied_head) {
    return absl::InvalidArgumentError("want at least one model, as many key-value heads as heads and a tied head");
  }
  AUTOLOCO_ASSIGN_OR_RETURN(Layout layout, MakeDecoderLayout(shape));
  return CatchTorch("making the engine", [&]() -> absl::StatusOr<std::unique_ptr<StackedEngine>> {
    at::set_num_threads(1);  // of this thread's operators: whole runs are spread over the threads instead
    return std::make_unique<TorchStackedEngine>(shape, std::move(layout), config, models);
  });
}

}  // namespace autoloco::bench
