#include "tests/support/fake_trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/mutex.h"
#include "common/base/random.h"

namespace autoloco::worker {
namespace {

constexpr std::uint64_t kTargetStream = 1;
constexpr double kTargetScale = 0.1;
constexpr double kNoiseScale = 0.02;  // uniform in plus or minus half of it

}  // namespace

FakeTrainer::FakeTrainer(Layout layout, const FakeTrainerOptions& options)
    : layout_(std::move(layout)),
      options_(options),
      target_(layout_.value_count()),
      values_(layout_.value_count(), 0.0f),
      first_moment_(layout_.value_count(), 0.0f),
      second_moment_(layout_.value_count(), 0.0f) {
  const RandomStream stream(options_.seed, kTargetStream);
  for (std::size_t i = 0; i < target_.size(); ++i) target_[i] = static_cast<float>(kTargetScale * stream.Normal(i));
}

absl::Status FakeTrainer::SetParameters(std::span<const float> values) {
  AUTOLOCO_CHECK(values.size() == values_.size());
  std::copy(values.begin(), values.end(), values_.begin());
  return absl::OkStatus();
}

absl::Status FakeTrainer::GetParameters(std::span<float> values) {
  AUTOLOCO_CHECK(values.size() == values_.size());
  std::copy(values_.begin(), values_.end(), values.begin());
  return absl::OkStatus();
}

absl::StatusOr<StepResult> FakeTrainer::Step(const TokenBatch& batch, double learning_rate) {
  const Instant end = options_.clock->Now() + options_.step_duration;
  const RandomStream noise(options_.seed, Hash64(std::as_bytes(batch.tokens)));
  const float rate = static_cast<float>(learning_rate);
  const float keep = static_cast<float>(options_.momentum);
  double squares = 0;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const float seen = target_[i] + static_cast<float>(kNoiseScale * (noise.Uniform(i) - 0.5));
    const float distance = values_[i] - seen;
    squares += static_cast<double>(distance) * distance;
    first_moment_[i] = keep * first_moment_[i] + (1 - keep) * distance;
    second_moment_[i] = keep * second_moment_[i] + (1 - keep) * distance * distance;
    values_[i] -= rate * first_moment_[i];
  }
  if (options_.nan_step == steps_ && !values_.empty()) values_[0] = std::numeric_limits<float>::quiet_NaN();
  ++steps_;
  WaitUntil(end);
  return StepResult{squares / static_cast<double>(std::max<std::size_t>(values_.size(), 1)), std::sqrt(squares)};
}

absl::StatusOr<std::uint64_t> FakeTrainer::SaveOptimizerState(std::span<float> first_moment,
                                                              std::span<float> second_moment) {
  AUTOLOCO_CHECK(first_moment.size() == values_.size());
  AUTOLOCO_CHECK(second_moment.size() == values_.size());
  std::copy(first_moment_.begin(), first_moment_.end(), first_moment.begin());
  std::copy(second_moment_.begin(), second_moment_.end(), second_moment.begin());
  return steps_;
}

absl::Status FakeTrainer::LoadOptimizerState(std::span<const float> first_moment, std::span<const float> second_moment,
                                             std::uint64_t steps) {
  AUTOLOCO_CHECK(first_moment.size() == values_.size());
  AUTOLOCO_CHECK(second_moment.size() == values_.size());
  first_moment_.assign(first_moment.begin(), first_moment.end());
  second_moment_.assign(second_moment.begin(), second_moment.end());
  steps_ = steps;
  return absl::OkStatus();
}

absl::StatusOr<LossSum> FakeTrainer::Evaluate(const TokenBatch& batch) {
  double squares = 0;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const double distance = static_cast<double>(values_[i]) - target_[i];
    squares += distance * distance;
  }
  const std::uint64_t tokens = std::uint64_t{batch.rows} * (batch.columns - 1);
  return LossSum{squares / static_cast<double>(std::max<std::size_t>(values_.size(), 1)) * static_cast<double>(tokens),
                 tokens};
}

void FakeTrainer::WaitUntil(Instant end) const {
  Mutex mutex;
  CondVar never;
  const MutexLock lock(&mutex);
  for (Instant now = options_.clock->Now(); now < end; now = options_.clock->Now()) never.WaitFor(&mutex, end - now);
}

}  // namespace autoloco::worker
