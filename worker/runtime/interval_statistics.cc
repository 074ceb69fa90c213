#include "worker/runtime/interval_statistics.h"

#include <algorithm>

#include "common/base/check.h"

namespace autoloco::worker {

IntervalStatistics::IntervalStatistics(std::uint32_t planned_steps)
    : edge_(std::max<std::uint32_t>(1, std::min<std::uint32_t>(16, planned_steps / 4))) {}

void IntervalStatistics::Add(const StepRecord& step) {
  if (steps_ < edge_) loss_first_sum_ += step.loss;
  last_losses_.push_back(step.loss);
  if (last_losses_.size() > edge_) last_losses_.pop_front();
  ++steps_;
  tokens_ += step.tokens;
  learning_rate_sum_ += step.learning_rate;
  loss_sum_ += step.loss;
  gradient_norm_sum_ += step.gradient_norm;
  duration_ += step.duration;
}

IntervalReport IntervalStatistics::Report() const {
  AUTOLOCO_CHECK(steps_ > 0);
  double last_sum = 0;
  for (const double loss : last_losses_) last_sum += loss;
  IntervalReport report;
  report.inner_steps = steps_;
  report.tokens = tokens_;
  report.learning_rate_sum = learning_rate_sum_;
  report.loss_mean = loss_sum_ / steps_;
  report.loss_first = loss_first_sum_ / std::min(edge_, steps_);
  report.loss_last = last_sum / static_cast<double>(last_losses_.size());
  report.gradient_norm_mean = gradient_norm_sum_ / steps_;
  report.step_seconds_mean = absl::ToDoubleSeconds(duration_) / steps_;
  return report;
}

}  // namespace autoloco::worker
