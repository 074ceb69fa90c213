#include "server/runtime/inbox.h"

#include <utility>

namespace autoloco::server {

void Inbox::Post(Input input) {
  MutexLock lock(&mutex_);
  inputs_.push_back(std::move(input));
  posted_.NotifyOne();
}

std::optional<Input> Inbox::Take(std::optional<Instant> deadline) {
  MutexLock lock(&mutex_);
  while (inputs_.empty()) {
    if (!deadline.has_value()) {
      posted_.Wait(&mutex_);
      continue;
    }
    const absl::Duration left = *deadline - clock_->Now();
    if (left <= absl::ZeroDuration()) return std::nullopt;
    posted_.WaitFor(&mutex_, left);
  }
  Input input = std::move(inputs_.front());
  inputs_.pop_front();
  return input;
}

}  // namespace autoloco::server
