// The one way into the event loop: a queue that any thread may post to and the loop thread takes from.
//
// It needs no limit of its own: every call has at most a few inputs under way (a session reads its next message only
// when the last one was handled), and the number of calls is limited.
#ifndef AUTOLOCO_SERVER_RUNTIME_INBOX_H_
#define AUTOLOCO_SERVER_RUNTIME_INBOX_H_

#include <atomic>
#include <deque>
#include <optional>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "server/runtime/inputs.h"

namespace autoloco::server {

// Thread-safe.
class Inbox {
 public:
  // `clock` must outlive the inbox.
  explicit Inbox(const Clock* clock) : clock_(clock) {}
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  void Post(Input input);

  // The oldest input; waits for one until `deadline` (none: for ever), then nothing. One thread.
  std::optional<Input> Take(std::optional<Instant> deadline);

  // A number that no other call of this process has; from 1.
  Ticket NextTicket() { return next_ticket_.fetch_add(1, std::memory_order_relaxed); }

 private:
  const Clock* const clock_;
  std::atomic<Ticket> next_ticket_{1};
  Mutex mutex_;
  CondVar posted_;
  std::deque<Input> inputs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_INBOX_H_
