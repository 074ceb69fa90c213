// What a person sees of the training: one live line on a terminal, a log line now and then elsewhere.
#ifndef AUTOLOCO_WORKER_RUNTIME_CONSOLE_H_
#define AUTOLOCO_WORKER_RUNTIME_CONSOLE_H_

#include <string>
#include <thread>

#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "worker/runtime/progress_board.h"

namespace autoloco::worker {

struct ConsoleOptions {
  bool terminal = false;                     // standard error is one
  absl::Duration pause = absl::Seconds(10);  // between log lines, where it is not
};

// Whether standard error is a terminal that a line can be redrawn on.
bool StandardErrorIsTerminal();

// The progress as one log line.
void LogProgress(const ProgressNumbers& numbers);

// Has a thread of its own from construction to destruction; on a terminal the first line stands at once. Log lines wipe
// the live line and draw it again.
class Console final : public LogHook {
 public:
  // `board` is borrowed. At most one Console at a time in a process.
  Console(const ConsoleOptions& options, const ProgressBoard* board);
  // Leaves the cursor on an empty line.
  ~Console() override;

  // By the log, with its lock held.
  void BeforeLine() override;
  void AfterLine() override;

 private:
  void Run();
  void Draw();

  const ConsoleOptions options_;
  const ProgressBoard* const board_;

  Mutex draw_mutex_;
  std::string line_ ABSL_GUARDED_BY(draw_mutex_);  // what stands on the terminal

  Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_RUNTIME_CONSOLE_H_
