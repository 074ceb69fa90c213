// How many calls gRPC still holds: a call counts until its last byte has left, not only until it was answered.
#ifndef AUTOLOCO_SERVER_RPC_OPEN_CALLS_H_
#define AUTOLOCO_SERVER_RPC_OPEN_CALLS_H_

#include <cstddef>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace autoloco::server {

// Thread-safe.
class OpenCalls {
 public:
  // `clock` must outlive this object.
  explicit OpenCalls(const Clock* clock) : clock_(clock) {}

  void Add() {
    MutexLock lock(&mutex_);
    ++count_;
  }
  void Remove() {
    MutexLock lock(&mutex_);
    --count_;
    if (count_ == 0) changed_.NotifyAll();
  }

  // Returns when no call is open, or after `timeout`; whether none is.
  bool WaitUntilNone(absl::Duration timeout) {
    const Instant deadline = clock_->Now() + timeout;
    MutexLock lock(&mutex_);
    while (count_ > 0) {
      const absl::Duration left = deadline - clock_->Now();
      if (left <= absl::ZeroDuration()) return false;
      changed_.WaitFor(&mutex_, left);
    }
    return true;
  }

 private:
  const Clock* const clock_;
  Mutex mutex_;
  CondVar changed_;
  std::size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RPC_OPEN_CALLS_H_
