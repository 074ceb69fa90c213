#include "common/base/parallel.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace autoloco {
namespace {

TEST(WorkPoolTest, RunsEveryIndexOnce) {
  for (const std::size_t threads : {1u, 2u, 4u}) {
    WorkPool pool(threads);
    EXPECT_EQ(pool.thread_count(), threads);
    for (const std::size_t count : {0u, 1u, 2u, 3u, 1000u}) {
      std::vector<int> calls(count, 0);  // plain ints: no two calls may share an index
      pool.ParallelFor(count, [&](std::size_t index, std::size_t) { ++calls[index]; });
      EXPECT_EQ(calls, std::vector<int>(count, 1)) << threads << " threads, " << count << " indices";
    }
  }
}

TEST(WorkPoolTest, ASlotIsUsedByOneCallAtATime) {
  WorkPool pool(3);
  std::vector<std::atomic<int>> busy(pool.thread_count());
  std::atomic<bool> overlapped{false};
  std::atomic<bool> out_of_range{false};
  pool.ParallelFor(2000, [&](std::size_t, std::size_t slot) {
    if (slot >= busy.size()) {
      out_of_range = true;
      return;
    }
    if (busy[slot].fetch_add(1) != 0) overlapped = true;
    busy[slot].fetch_sub(1);
  });
  EXPECT_FALSE(overlapped);
  EXPECT_FALSE(out_of_range);
}

// Deadlocks unless calls really run side by side.
TEST(WorkPoolTest, CallsRunAtTheSameTime) {
  WorkPool pool(2);
  Mutex mutex;
  CondVar changed;
  int arrived = 0;
  pool.ParallelFor(2, [&](std::size_t, std::size_t) {
    MutexLock lock(&mutex);
    ++arrived;
    changed.NotifyAll();
    while (arrived < 2) changed.Wait(&mutex);
  });
  EXPECT_EQ(arrived, 2);
}

TEST(WorkPoolTest, WorksFromInsideATaskAndFromSeveralThreads) {
  WorkPool pool(2);
  std::atomic<int> calls{0};
  const auto outer = [&](std::size_t, std::size_t) {
    pool.ParallelFor(10, [&](std::size_t, std::size_t) { ++calls; });
  };
  std::thread other([&] { pool.ParallelFor(8, outer); });
  pool.ParallelFor(8, outer);
  other.join();
  EXPECT_EQ(calls, 160);
}

TEST(WorkPoolTest, PostedTasksStartInOrderAndAreFinishedByTheDestructor) {
  std::vector<int> order;
  {
    WorkPool pool(1);
    for (int i = 0; i < 100; ++i) pool.Post([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(WorkPoolTest, ALoopFinishesWhileThePoolIsBusy) {
  WorkPool pool(1);
  Mutex mutex;
  CondVar changed;
  bool release = false;
  pool.Post([&] {
    MutexLock lock(&mutex);
    while (!release) changed.Wait(&mutex);
  });
  int calls = 0;
  pool.ParallelFor(5, [&](std::size_t, std::size_t) { ++calls; });  // the caller does it all
  EXPECT_EQ(calls, 5);
  MutexLock lock(&mutex);
  release = true;
  changed.NotifyAll();
}

}  // namespace
}  // namespace autoloco
