#include "server/stop_signal.h"

#include <csignal>
#include <cstdlib>

#include "common/base/log.h"

namespace autoloco::server {

void StopSignal::OnShutdownSignal(int signal, int count) {
  const char* const name = signal == SIGTERM ? "SIGTERM" : "SIGINT";
  if (count > 1) {
    Log(LogLevel::kWarning, "killed").Add("signal", name).Add("reason", "second signal");
    std::_Exit(128 + signal);
  }
  Log(LogLevel::kInfo, "shutdown_asked").Add("signal", name);
  inbox_->Post(ShutdownAsked{name});
  MutexLock lock(&mutex_);
  asked_ = true;
  changed_.NotifyAll();
}

void StopSignal::Wait() {
  MutexLock lock(&mutex_);
  while (!asked_) changed_.Wait(&mutex_);
}

}  // namespace autoloco::server
