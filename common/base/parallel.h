// A small fixed pool of threads for work that must not run on an event loop: tensor passes, disk, checksums.
#ifndef AUTOLOCO_COMMON_BASE_PARALLEL_H_
#define AUTOLOCO_COMMON_BASE_PARALLEL_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "common/base/mutex.h"

namespace autoloco {

// Thread-safe. Threads sleep while there is nothing to do.
class WorkPool {
 public:
  // Starts `thread_count` threads. REQUIRES: thread_count >= 1.
  explicit WorkPool(std::size_t thread_count);
  // Runs what was posted before, and what that posts, then joins. REQUIRES: no other thread uses the pool any more.
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  std::size_t thread_count() const { return threads_.size(); }

  // Calls fn(index, slot) once for each index in [0, count), in no fixed order, and returns when all calls have
  // returned; what they wrote is visible to the caller. At most thread_count() calls run at once, the caller's thread
  // among them, each under another `slot` in [0, thread_count()): per-thread scratch memory is indexed by slot. May be
  // called from several threads and from inside a task: the caller works itself, so it never waits for a free thread.
  void ParallelFor(std::size_t count, const std::function<void(std::size_t index, std::size_t slot)>& fn);

  // Runs `task` on a thread of the pool, some time later; tasks start in the order of posting.
  void Post(std::function<void()> task);

 private:
  void RunTasks();

  Mutex mutex_;
  CondVar wake_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // constant after construction
};

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_BASE_PARALLEL_H_
