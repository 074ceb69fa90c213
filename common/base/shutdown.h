// SIGTERM and SIGINT as calls on an ordinary thread, where locks and memory may be used.
#ifndef AUTOLOCO_COMMON_BASE_SHUTDOWN_H_
#define AUTOLOCO_COMMON_BASE_SHUTDOWN_H_

#include <thread>

namespace autoloco {

// What a program does when it is told to stop.
class ShutdownListener {
 public:
  virtual ~ShutdownListener() = default;
  // Called on the signal thread. `signal`: SIGTERM or SIGINT; `count`: 1 for the first one of this process's
  // ShutdownSignals, 2 for the second, and so on: by custom 1 means finish in order, 2 means leave now. The same signal within a second
  // counts once.
  virtual void OnShutdownSignal(int signal, int count) = 0;
};

// Takes over SIGTERM and SIGINT for as long as it lives. At most one at a time in a process.
class ShutdownSignals {
 public:
  // `listener` must outlive this object.
  explicit ShutdownSignals(ShutdownListener* listener);
  // Gives the signals their former handlers back; no call runs or starts afterwards.
  ~ShutdownSignals();
  ShutdownSignals(const ShutdownSignals&) = delete;
  ShutdownSignals& operator=(const ShutdownSignals&) = delete;

 private:
  void Run();

  ShutdownListener* const listener_;
  std::thread thread_;
};

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_BASE_SHUTDOWN_H_
