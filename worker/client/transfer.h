// One bulk call under way: can be cancelled from outside, and is cancelled when it no longer moves. A slow link may
// take as long as it likes; only a transfer that moves less than 256 KiB in the stall timeout is given up.
#ifndef AUTOLOCO_WORKER_CLIENT_TRANSFER_H_
#define AUTOLOCO_WORKER_CLIENT_TRANSFER_H_

#include <grpcpp/client_context.h>

#include <cstdint>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace autoloco::worker {

// Thread-safe. Shared by the thread that makes the call and the one that may cancel it.
class Transfer {
 public:
  explicit Transfer(absl::Duration stall_timeout) : stall_timeout_(stall_timeout) {}
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Starts to watch the call made with `context`, which must live until Finish. CANCELLED when Cancel came before.
  absl::Status Begin(grpc::ClientContext* context);
  void Moved(std::uint64_t bytes);
  // The call is over. What it ended with, or why it was cancelled: DEADLINE_EXCEEDED for a stall, CANCELLED.
  absl::Status Finish(const absl::Status& status);

  void Cancel();

 private:
  void Watch();

  const absl::Duration stall_timeout_;
  Mutex mutex_;
  CondVar changed_;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::uint64_t moved_ ABSL_GUARDED_BY(mutex_) = 0;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool stalled_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread watch_;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CLIENT_TRANSFER_H_
