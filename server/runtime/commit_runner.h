// The thread that changes the parameters, one commit after the other, and the one beside it that writes checkpoints of
// them. Jobs are begun in the order given, so a checkpoint asked for before a commit has what was there before it: the
// commit leaves a copy of what has not been read yet (checkpoint_reader.h). Nothing else touches the parameters while
// the loop runs, but for readers of the view.
#ifndef AUTOLOCO_SERVER_RUNTIME_COMMIT_RUNNER_H_
#define AUTOLOCO_SERVER_RUNTIME_COMMIT_RUNNER_H_

#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/base/parallel.h"
#include "server/core/commit_method.h"
#include "server/core/outer_schedule.h"
#include "server/core/types.h"
#include "server/runtime/checkpoint_reader.h"
#include "server/runtime/inbox.h"
#include "server/runtime/parameter_store.h"
#include "server/runtime/payload.h"
#include "server/runtime/ports.h"

namespace autoloco::server {

// Loop thread only, after construction.
class CommitRunner {
 public:
  // All borrowed; must outlive the runner.
  struct Tools {
    const Clock* clock = nullptr;
    ParameterStore* parameters = nullptr;
    CheckpointStore* checkpoints = nullptr;
    Telemetry* telemetry = nullptr;
    WorkPool* pool = nullptr;  // for the blocks of a job
    Inbox* inbox = nullptr;    // CommitFinished and CheckpointFinished go there
  };

  explicit CommitRunner(const Tools& tools) : tools_(tools) {}

  struct Delta {
    std::shared_ptr<const Payload> payload;
    std::string worker;
    double weight = 0;
  };
  struct CommitJob {
    Round round = 0;
    std::vector<Delta> deltas;
    OuterStep step = {};
    CommitMethod method = {};
  };
  // Turns the deltas into version round + 1; CommitFinished follows. A commit that fails half-way leaves parameters
  // that nobody may use: the process ends with one line then, and the next start goes on from the newest checkpoint.
  void Commit(CommitJob job);
  // Stores the parameters as version snapshot.version; CheckpointFinished follows. One is written at a time: the next
  // one, and commits after it, wait for its end.
  void Checkpoint(CoreSnapshot snapshot);

  // Waits for the jobs under way.
  ~CommitRunner() = default;

 private:
  // On the commit thread.
  void RunCommit(const CommitJob& job);
  void BeginCheckpoint(CoreSnapshot snapshot);
  void WaitForCheckpoint();
  // On the checkpoint thread. `start`: when it was begun.
  void WriteCheckpoint(const CoreSnapshot& snapshot, CheckpointReader* reader, Instant start);

  const Tools tools_;
  std::shared_ptr<CheckpointReader> reader_;  // commit thread: of a checkpoint begun since the last commit; null: none
  Mutex mutex_;
  CondVar written_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  WorkPool checkpoint_thread_{1};
  WorkPool thread_{1};  // last: it ends first, and gives no more to the other
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_COMMIT_RUNNER_H_
