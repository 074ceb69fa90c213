// SIGTERM and SIGINT for the server: the first asks the run to end in order, the second ends the process at once.
#ifndef AUTOLOCO_SERVER_STOP_SIGNAL_H_
#define AUTOLOCO_SERVER_STOP_SIGNAL_H_

#include "common/base/mutex.h"
#include "common/base/shutdown.h"
#include "server/runtime/inbox.h"

namespace autoloco::server {

// Thread-safe.
class StopSignal final : public ShutdownListener {
 public:
  // `inbox` must outlive this object.
  explicit StopSignal(Inbox* inbox) : inbox_(inbox) {}

  void OnShutdownSignal(int signal, int count) override;

  // Returns once a signal has come.
  void Wait();

 private:
  Inbox* const inbox_;
  Mutex mutex_;
  CondVar changed_;
  bool asked_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STOP_SIGNAL_H_
