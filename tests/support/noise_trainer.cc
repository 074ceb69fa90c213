#include "tests/support/noise_trainer.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/codec/codec.h"

namespace autoloco::worker {
namespace {

constexpr std::uint64_t kTableStream = 1;
constexpr std::uint64_t kPlaceStream = 2;
constexpr double kDeviation = 0.02;

}  // namespace

NoiseTrainer::NoiseTrainer(Layout layout, NoiseTrainerOptions options)
    : layout_(std::move(layout)), options_(std::move(options)), table_(2 * kBlockValues) {
  const RandomStream stream(options_.seed, kTableStream);
  for (std::size_t i = 0; i < table_.size(); ++i) table_[i] = static_cast<float>(kDeviation * stream.Normal(i));
}

absl::Status NoiseTrainer::PassGate() { return options_.gate == nullptr ? absl::OkStatus() : options_.gate->Pass(); }

absl::Status NoiseTrainer::SetParameters(std::span<const float> values) {
  AUTOLOCO_CHECK(values.size() == layout_.value_count());
  return PassGate();
}

absl::Status NoiseTrainer::GetParameters(std::span<float> values) {
  AUTOLOCO_CHECK(values.size() == layout_.value_count());
  const RandomStream places(options_.seed, kPlaceStream + steps_);
  for (std::uint64_t block = 0; block < BlockCount(values.size()); ++block) {
    const auto place = table_.begin() + static_cast<std::ptrdiff_t>(places.Bits(block) % kBlockValues);
    std::copy_n(place, BlockSize(values.size(), block), values.data() + block * kBlockValues);
  }
  return PassGate();
}

absl::StatusOr<StepResult> NoiseTrainer::Step(const TokenBatch&, double) {
  ++steps_;
  return StepResult{.loss = 1, .gradient_norm = 1};
}

absl::StatusOr<std::uint64_t> NoiseTrainer::SaveOptimizerState(std::span<float> first_moment,
                                                               std::span<float> second_moment) {
  std::fill(first_moment.begin(), first_moment.end(), 0.0f);
  std::fill(second_moment.begin(), second_moment.end(), 0.0f);
  return steps_;
}

absl::Status NoiseTrainer::LoadOptimizerState(std::span<const float>, std::span<const float>, std::uint64_t steps) {
  steps_ = steps;
  return absl::OkStatus();
}

absl::StatusOr<LossSum> NoiseTrainer::Evaluate(const TokenBatch& batch) {
  const std::uint64_t tokens = std::uint64_t{batch.rows} * (batch.columns - 1);
  return LossSum{.nats = static_cast<double>(tokens), .tokens = tokens};
}

}  // namespace autoloco::worker
