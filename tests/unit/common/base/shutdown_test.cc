#include "common/base/shutdown.h"

#include <signal.h>

#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "gtest/gtest.h"

namespace autoloco {
namespace {

class Recorder : public ShutdownListener {
 public:
  void OnShutdownSignal(int signal, int count) override {
    MutexLock lock(&mutex_);
    calls_.push_back({signal, count});
    changed_.NotifyAll();
  }
  std::vector<std::pair<int, int>> Await(std::size_t count) {
    MutexLock lock(&mutex_);
    while (calls_.size() < count) changed_.Wait(&mutex_);
    return calls_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::pair<int, int>> calls_ ABSL_GUARDED_BY(mutex_);
};

TEST(ShutdownTest, CountsTheSignals) {
  Recorder recorder;
  const ShutdownSignals signals(&recorder);
  raise(SIGTERM);
  EXPECT_EQ(recorder.Await(1), (std::vector<std::pair<int, int>>{{SIGTERM, 1}}));
  raise(SIGINT);
  EXPECT_EQ(recorder.Await(2), (std::vector<std::pair<int, int>>{{SIGTERM, 1}, {SIGINT, 2}}));
}

TEST(ShutdownTest, ASignalToTheProcessAndItsGroupIsOneRequest) {
  Recorder recorder;
  const ShutdownSignals signals(&recorder);
  raise(SIGTERM);
  raise(SIGTERM);
  raise(SIGINT);
  EXPECT_EQ(recorder.Await(2), (std::vector<std::pair<int, int>>{{SIGTERM, 1}, {SIGINT, 2}}));
}

TEST(ShutdownTest, CountsAnewAndRestoresTheHandlers) {
  struct sigaction before = {};
  ASSERT_EQ(sigaction(SIGTERM, nullptr, &before), 0);
  for (int i = 0; i < 3; ++i) {
    Recorder recorder;
    const ShutdownSignals signals(&recorder);
    raise(SIGTERM);
    EXPECT_EQ(recorder.Await(1), (std::vector<std::pair<int, int>>{{SIGTERM, 1}}));
  }
  struct sigaction after = {};
  ASSERT_EQ(sigaction(SIGTERM, nullptr, &after), 0);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

}  // namespace
}  // namespace autoloco
