// One bulk transfer under way, of one call or several side by side: can be cancelled from outside, and is cancelled
// when it no longer moves. A slow link may take as long as it likes; only a transfer that moves less than 256 KiB in
// the stall timeout is given up.
#ifndef AUTOLOCO_WORKER_CLIENT_TRANSFER_H_
#define AUTOLOCO_WORKER_CLIENT_TRANSFER_H_

#include <grpcpp/client_context.h>

#include <cstdint>
#include <set>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace autoloco::worker {

// Thread-safe. Shared by the threads that make the calls and the one that may cancel them.
class Transfer {
 public:
  explicit Transfer(absl::Duration stall_timeout) : stall_timeout_(stall_timeout) {}
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Starts to watch a call made with `context`, which must live until End or Finish. CANCELLED when Cancel or StopCalls
  // came before.
  absl::Status Begin(grpc::ClientContext* context);
  // This call is over; others may go on.
  void End(grpc::ClientContext* context);
  void Moved(std::uint64_t bytes);
  // Cancels the calls under way and those to come: they are not needed any more.
  void StopCalls();
  // The transfer is over. What it ended with, or why it was cancelled: DEADLINE_EXCEEDED for a stall, CANCELLED.
  absl::Status Finish(const absl::Status& status);

  void Cancel();

 private:
  void Watch();
  void CancelCalls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const absl::Duration stall_timeout_;
  Mutex mutex_;
  CondVar changed_;
  std::set<grpc::ClientContext*> contexts_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t moved_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool stalled_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread watch_;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CLIENT_TRANSFER_H_
