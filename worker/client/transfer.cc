#include "worker/client/transfer.h"

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/rpc/protocol.h"

namespace autoloco::worker {

Transfer::~Transfer() {
  if (watch_.joinable()) watch_.join();
}

absl::Status Transfer::Begin(grpc::ClientContext* context) {
  MutexLock lock(&mutex_);
  if (cancelled_ || stopped_) return absl::CancelledError("cancelled before it began");
  contexts_.insert(context);
  if (!watch_.joinable()) watch_ = std::thread(&Transfer::Watch, this);
  return absl::OkStatus();
}

void Transfer::End(grpc::ClientContext* context) {
  MutexLock lock(&mutex_);
  contexts_.erase(context);
}

void Transfer::Moved(std::uint64_t bytes) {
  MutexLock lock(&mutex_);
  moved_ += bytes;
}

absl::Status Transfer::Finish(const absl::Status& status) {
  MutexLock lock(&mutex_);
  finished_ = true;
  contexts_.clear();
  changed_.NotifyAll();
  if (status.ok()) return status;
  if (stalled_) {
    return absl::DeadlineExceededError(
        absl::StrCat("the transfer moved less than ", kStallBytes, " bytes in ", absl::FormatDuration(stall_timeout_)));
  }
  if (cancelled_) return absl::CancelledError("cancelled");
  return status;
}

void Transfer::Cancel() {
  MutexLock lock(&mutex_);
  cancelled_ = true;
  CancelCalls();
}

void Transfer::StopCalls() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  CancelCalls();
}

void Transfer::CancelCalls() {
  for (grpc::ClientContext* context : contexts_) context->TryCancel();
}

void Transfer::Watch() {
  MutexLock lock(&mutex_);
  std::uint64_t mark = moved_;
  Instant mark_at = MonotonicClock()->Now();
  while (!finished_) {
    const absl::Duration left = mark_at + stall_timeout_ - MonotonicClock()->Now();
    if (left > absl::ZeroDuration()) {
      changed_.WaitFor(&mutex_, left);
    } else if (moved_ - mark < kStallBytes) {
      stalled_ = true;
      CancelCalls();
      return;
    } else {
      mark = moved_;
      mark_at = MonotonicClock()->Now();
    }
  }
}

}  // namespace autoloco::worker
