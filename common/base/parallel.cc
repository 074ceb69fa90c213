#include "common/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "common/base/check.h"

namespace autoloco {
namespace {

// One ParallelFor. Shared with the helper tasks, which may start after it ended: they then find no index left and
// never touch `fn`, which is gone by then.
class IndexLoop {
 public:
  IndexLoop(std::size_t count, const std::function<void(std::size_t, std::size_t)>* fn) : count_(count), fn_(fn) {}

  // Takes indices until none is left.
  void Help(std::size_t slot) {
    std::size_t finished = 0;
    for (std::size_t index = next_.fetch_add(1); index < count_; index = next_.fetch_add(1)) {
      (*fn_)(index, slot);
      ++finished;
    }
    if (finished == 0) return;
    MutexLock lock(&mutex_);
    finished_ += finished;
    if (finished_ == count_) done_.NotifyAll();
  }

  void AwaitAll() {
    MutexLock lock(&mutex_);
    while (finished_ < count_) done_.Wait(&mutex_);
  }

 private:
  const std::size_t count_;
  const std::function<void(std::size_t, std::size_t)>* const fn_;
  std::atomic<std::size_t> next_{0};
  Mutex mutex_;
  CondVar done_;
  std::size_t finished_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

WorkPool::WorkPool(std::size_t thread_count) {
  AUTOLOCO_CHECK(thread_count >= 1);
  threads_.reserve(thread_count);
  for (std::size_t i = 0; i < thread_count; ++i) threads_.emplace_back(&WorkPool::RunTasks, this);
}

WorkPool::~WorkPool() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void WorkPool::ParallelFor(std::size_t count, const std::function<void(std::size_t, std::size_t)>& fn) {
  if (count == 0) return;
  auto loop = std::make_shared<IndexLoop>(count, &fn);
  const std::size_t participants = std::min(thread_count(), count);
  for (std::size_t slot = 1; slot < participants; ++slot) Post([loop, slot] { loop->Help(slot); });
  loop->Help(0);
  loop->AwaitAll();
}

void WorkPool::Post(std::function<void()> task) {
  {
    MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.NotifyOne();
}

void WorkPool::RunTasks() {
  while (true) {
    std::function<void()> task;
    {
      MutexLock lock(&mutex_);
      while (tasks_.empty() && !stopping_) wake_.Wait(&mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace autoloco
