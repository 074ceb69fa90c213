#include "worker/runtime/progress_board.h"

#include <algorithm>

namespace autoloco::worker {

void ProgressBoard::Ready(std::uint64_t inner_steps_total) {
  MutexLock lock(&mutex_);
  numbers_.inner_steps_total = inner_steps_total;
  ready_at_ = clock_->Now();
}

void ProgressBoard::SetPhase(WorkerPhase phase) {
  MutexLock lock(&mutex_);
  numbers_.phase = phase;
}

void ProgressBoard::IntervalBegan(const Assignment& assignment) {
  MutexLock lock(&mutex_);
  numbers_.round = assignment.round;
  numbers_.steps_done = 0;
  numbers_.steps_target = assignment.inner_steps;
  numbers_.inner_steps_done = assignment.first_inner_step;
  if (!first_interval_at_) {
    first_interval_at_ = clock_->Now();
    first_inner_step_ = assignment.first_inner_step;
  }
}

void ProgressBoard::StepDone(const StepRecord& step) {
  MutexLock lock(&mutex_);
  ++numbers_.steps_done;
  ++numbers_.inner_steps_done;
  numbers_.loss = step.loss;
  computed_ += step.duration;
  const double seconds = absl::ToDoubleSeconds(step.duration);
  if (seconds <= 0) return;
  const double speed = static_cast<double>(step.tokens) / seconds;
  constexpr double kWeight = 1.0 / 16;
  numbers_.tokens_per_second = numbers_.tokens_per_second == 0
                                   ? speed
                                   : numbers_.tokens_per_second + kWeight * (speed - numbers_.tokens_per_second);
}

void ProgressBoard::DeltaEncoded(const CodingReport& coding) {
  MutexLock lock(&mutex_);
  numbers_.bits_per_value = coding.bits_per_value();
  numbers_.snr_db.reset();
  if (coding.squared_error > 0) numbers_.snr_db = coding.snr_db();
}

void ProgressBoard::Computed(absl::Duration duration) {
  MutexLock lock(&mutex_);
  computed_ += duration;
}

ProgressNumbers ProgressBoard::Read() const {
  MutexLock lock(&mutex_);
  ProgressNumbers numbers = numbers_;
  const Instant now = clock_->Now();
  if (ready_at_ && now > *ready_at_)
    numbers.compute_share = std::min(1.0, absl::FDivDuration(computed_, now - *ready_at_));
  if (first_interval_at_ && numbers.inner_steps_done > first_inner_step_ &&
      numbers.inner_steps_total >= numbers.inner_steps_done) {
    const auto done = static_cast<double>(numbers.inner_steps_done - first_inner_step_);
    const auto left = static_cast<double>(numbers.inner_steps_total - numbers.inner_steps_done);
    numbers.time_left = (now - *first_interval_at_) * (left / done);
  }
  return numbers;
}

}  // namespace autoloco::worker
