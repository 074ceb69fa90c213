// One inner step: zero the flat gradient, forward, backward into it, its norm, AdamW over the flat buffers.
#include "worker/train/torch_trainer.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <torch/version.h>

#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "worker/train/torch_adamw.h"
#include "worker/train/torch_decoder.h"
#include "worker/train/torch_status.h"

namespace autoloco::worker {
namespace {

absl::StatusOr<at::Device> ResolveDevice(const std::string& name) {
  if (name == "cpu") return at::Device(at::kCPU);
  if (name == "auto") return at::hasCUDA() ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  absl::string_view rest = name;
  std::uint32_t index = 0;
  const bool known = absl::ConsumePrefix(&rest, "cuda") &&
                     (rest.empty() || (absl::ConsumePrefix(&rest, ":") && absl::SimpleAtoi(rest, &index)));
  if (!known) {
    return absl::InvalidArgumentError(absl::StrCat("device: want auto, cpu, cuda or cuda:N, got '", name, "'"));
  }
  const int devices = at::hasCUDA() ? at::detail::getCUDAHooks().deviceCount() : 0;
  if (index >= static_cast<std::uint32_t>(devices)) {
    return absl::FailedPreconditionError(
        absl::StrCat("device '", name, "': LibTorch finds ", devices, " CUDA devices here; device cpu always works"));
  }
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index));
}

// The BLAS that LibTorch was built with, as its configuration names it.
std::string BlasName() {
  constexpr absl::string_view kKey = "BLAS_INFO=";
  const std::string config = at::show_config();
  const std::size_t at = config.find(kKey.data());
  if (at == std::string::npos) return "unknown";
  const std::size_t begin = at + kKey.size();
  return config.substr(begin, config.find_first_of(", \n", begin) - begin);
}

class TorchTrainer final : public Trainer {
 public:
  TorchTrainer(const DecoderShape& shape, Layout layout, const AdamWConfig& config, at::Device device)
      : shape_(shape),
        layout_(std::move(layout)),
        device_(device),
        values_(at::zeros({ValueCount()}, at::TensorOptions(device).dtype(at::kFloat))),
        gradients_(at::zeros({ValueCount()}, at::TensorOptions(device).dtype(at::kFloat))),
        decoder_(shape_, layout_, values_, gradients_),
        optimizer_(config, layout_, values_, gradients_) {}

  const Layout& layout() const override { return layout_; }

  absl::Status SetParameters(std::span<const float> values) override {
    AUTOLOCO_CHECK(values.size() == layout_.value_count());
    return CatchTorch("setting parameters", [&] {
      const at::NoGradGuard no_grad;
      values_.copy_(at::from_blob(const_cast<float*>(values.data()), {ValueCount()}, at::kFloat));  // NOLINT: only read
      return absl::OkStatus();
    });
  }

  absl::Status GetParameters(std::span<float> values) override {
    AUTOLOCO_CHECK(values.size() == layout_.value_count());
    return CatchTorch("reading parameters", [&] {
      const at::NoGradGuard no_grad;
      at::from_blob(values.data(), {ValueCount()}, at::kFloat).copy_(values_);
      return absl::OkStatus();
    });
  }

  absl::StatusOr<StepResult> Step(const TokenBatch& batch, double learning_rate) override {
    AUTOLOCO_RETURN_IF_ERROR(CheckBatch(batch));
    return CatchTorch("training step", [&]() -> absl::StatusOr<StepResult> {
      gradients_.zero_();
      const at::Tensor loss = Losses(batch, at::Reduction::Mean);
      loss.backward();
      const at::NoGradGuard no_grad;
      const StepResult result{loss.item<double>(), optimizer_.GradientNorm()};
      if (std::isfinite(result.gradient_norm)) optimizer_.Step(result.gradient_norm, learning_rate);
      return result;
    });
  }

  absl::StatusOr<std::uint64_t> SaveOptimizerState(std::span<float> first_moment,
                                                   std::span<float> second_moment) override {
    AUTOLOCO_CHECK(first_moment.size() == layout_.value_count());
    AUTOLOCO_CHECK(second_moment.size() == layout_.value_count());
    return CatchTorch("saving the optimizer's state", [&]() -> absl::StatusOr<std::uint64_t> {
      const at::NoGradGuard no_grad;
      at::from_blob(first_moment.data(), {ValueCount()}, at::kFloat).copy_(optimizer_.first_moment());
      at::from_blob(second_moment.data(), {ValueCount()}, at::kFloat).copy_(optimizer_.second_moment());
      return static_cast<std::uint64_t>(optimizer_.step_count().item<float>());
    });
  }

  absl::Status LoadOptimizerState(std::span<const float> first_moment, std::span<const float> second_moment,
                                  std::uint64_t steps) override {
    AUTOLOCO_CHECK(first_moment.size() == layout_.value_count());
    AUTOLOCO_CHECK(second_moment.size() == layout_.value_count());
    return CatchTorch("loading the optimizer's state", [&] {
      const at::NoGradGuard no_grad;
      optimizer_.first_moment().copy_(
          at::from_blob(const_cast<float*>(first_moment.data()), {ValueCount()}, at::kFloat));  // NOLINT: only read
      optimizer_.second_moment().copy_(
          at::from_blob(const_cast<float*>(second_moment.data()), {ValueCount()}, at::kFloat));  // NOLINT: only read
      optimizer_.step_count().fill_(static_cast<double>(steps));
      return absl::OkStatus();
    });
  }

  absl::StatusOr<LossSum> Evaluate(const TokenBatch& batch) override {
    AUTOLOCO_RETURN_IF_ERROR(CheckBatch(batch));
    return CatchTorch("evaluation", [&]() -> absl::StatusOr<LossSum> {
      const c10::InferenceMode inference;
      const at::Tensor losses = Losses(batch, at::Reduction::None);
      return LossSum{losses.to(at::kDouble).sum().item<double>(), static_cast<std::uint64_t>(losses.numel())};
    });
  }

  std::string Description() const override {
    return absl::StrCat("LibTorch ", TORCH_VERSION, ", device ", device_.str(), ", ", at::get_num_threads(),
                        " threads, BLAS ", BlasName());
  }

 private:
  std::int64_t ValueCount() const { return static_cast<std::int64_t>(layout_.value_count()); }

  absl::Status CheckBatch(const TokenBatch& batch) const {
    if (batch.rows == 0 || batch.columns < 2 || batch.columns - 1 > shape_.context ||
        batch.tokens.size() != std::uint64_t{batch.rows} * batch.columns) {
      return absl::InvalidArgumentError(
          absl::StrCat("batch: want rows x columns tokens with 2 to ", std::uint64_t{shape_.context} + 1,
                       " columns, got ", batch.tokens.size(), " tokens for ", batch.rows, " x ", batch.columns));
    }
    for (const std::int32_t token : batch.tokens) {
      if (token < 0 || static_cast<std::uint32_t>(token) >= shape_.vocab_size) {
        return absl::InvalidArgumentError(
            absl::StrCat("batch: want tokens from 0 to ", shape_.vocab_size - 1, ", got ", token));
      }
    }
    return absl::OkStatus();
  }

  // Cross entropy of every column but the first, given those before it: a scalar, or (rows * (columns - 1)).
  at::Tensor Losses(const TokenBatch& batch, at::Reduction::Reduction reduction) const {
    const at::Tensor borrowed = at::from_blob(const_cast<std::int32_t*>(batch.tokens.data()),  // NOLINT: only read
                                              {batch.rows, batch.columns}, at::kInt);
    const at::Tensor tokens = borrowed.to(device_, at::kLong);
    const std::int64_t context = std::int64_t{batch.columns} - 1;
    const at::Tensor logits = decoder_.Logits(tokens.narrow(1, 0, context));
    const at::Tensor targets = tokens.narrow(1, 1, context).reshape({-1});
    return at::cross_entropy_loss(logits.view({-1, std::int64_t{shape_.vocab_size}}), targets, {}, reduction);
  }

  const DecoderShape shape_;
  const Layout layout_;
  const at::Device device_;
  at::Tensor values_;     // flat parameters
  at::Tensor gradients_;  // flat
  const TorchDecoder decoder_;
  TorchAdamW optimizer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> MakeTorchTrainer(const DecoderShape& shape, const AdamWConfig& config,
                                                          const TorchTrainerOptions& options) {
  AUTOLOCO_RETURN_IF_ERROR(ValidateDecoderShape(shape));
  AUTOLOCO_ASSIGN_OR_RETURN(Layout layout, MakeDecoderLayout(shape));
  return CatchTorch("making the trainer", [&]() -> absl::StatusOr<std::unique_ptr<Trainer>> {
    AUTOLOCO_ASSIGN_OR_RETURN(const at::Device device, ResolveDevice(options.device));
    if (options.threads > 0) at::set_num_threads(static_cast<int>(options.threads));
    return std::make_unique<TorchTrainer>(shape, std::move(layout), config, device);
  });
}

}  // namespace autoloco::worker
