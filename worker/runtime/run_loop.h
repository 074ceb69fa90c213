// The worker's event loop: one thread that owns the machine, feeds it events in the order of their arrival and carries
// out its effects.
#ifndef AUTOLOCO_WORKER_RUNTIME_RUN_LOOP_H_
#define AUTOLOCO_WORKER_RUNTIME_RUN_LOOP_H_

#include <deque>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "worker/core/config.h"
#include "worker/core/effects.h"
#include "worker/core/events.h"
#include "worker/core/worker_machine.h"
#include "worker/runtime/engine.h"
#include "worker/runtime/ports.h"
#include "worker/runtime/progress_board.h"
#include "worker/runtime/run_settings.h"

namespace autoloco::worker {

class RunLoop final : public EventSink {
 public:
  RunLoop(const MachineConfig& config, std::string worker_name, const Clock* clock, ProgressBoard* board);

  // Thread-safe; may be called before Run and after it.
  void Post(Event event) override;
  void PostWelcome(Welcomed event, RunSettings settings) override;

  // Runs until the machine has finished; returns the exit code. `engine` and `connection` are borrowed for the call.
  int Run(Engine* engine, ServerConnection* connection);

 private:
  // The next event, or none at `deadline`.
  std::optional<Event> Pop(std::optional<absl::Time> deadline);

  void Do(const OpenSession& effect);
  void Do(const CloseSession& effect);
  void Do(const SendReady& effect);
  void Do(const SendProgress& effect);
  void Do(const SendGoodbye& effect);
  void Do(const Prepare& effect);
  void Do(const StartPull& effect);
  void Do(const CancelPull& effect);
  void Do(const StartEvaluation& effect);
  void Do(const StartTraining& effect);
  void Do(const CancelWork& effect);
  void Do(const EndTrainingEarly& effect);
  void Do(const StartEncoding& effect);
  void Do(const StartPush& effect);
  void Do(const AskPushStatus& effect);
  void Do(const CancelPush& effect);
  void Do(const DropDelta& effect);
  void Do(const Note& effect);
  void Do(const Finish& effect);

  const std::string worker_name_;
  const Clock* const clock_;
  ProgressBoard* const board_;
  WorkerMachine machine_;     // loop thread
  Engine* engine_ = nullptr;  // loop thread, during Run
  ServerConnection* connection_ = nullptr;
  std::optional<int> exit_code_;  // loop thread

  Mutex mutex_;
  CondVar arrived_;
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  std::optional<RunSettings> settings_ ABSL_GUARDED_BY(mutex_);  // of the first Welcome
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_RUNTIME_RUN_LOOP_H_
