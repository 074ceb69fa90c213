#include "common/base/mutex.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace autoloco {
namespace {

TEST(MutexTest, ExcludesOtherThreads) {
  Mutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        MutexLock lock(&mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4000);
}

TEST(CondVarTest, WaitsForAnotherThread) {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  bool seen = false;
  std::thread waiter([&] {
    MutexLock lock(&mutex);
    while (!ready) changed.Wait(&mutex);
    seen = true;
    changed.NotifyAll();
  });
  {
    MutexLock lock(&mutex);
    ready = true;
    changed.NotifyOne();
    while (!seen) changed.Wait(&mutex);
  }
  waiter.join();
  EXPECT_TRUE(seen);
}

TEST(CondVarTest, WaitForGivesUp) {
  Mutex mutex;
  CondVar never;
  int wake_ups = 0;
  MutexLock lock(&mutex);
  while (wake_ups < 1000 && never.WaitFor(&mutex, absl::Milliseconds(1))) ++wake_ups;  // wake-ups can be spurious
  EXPECT_LT(wake_ups, 1000);
}

}  // namespace
}  // namespace autoloco
