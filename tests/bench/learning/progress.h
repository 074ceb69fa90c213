// Says on standard error how far the benchmark is and when it will be done.
#ifndef AUTOLOCO_TESTS_BENCH_LEARNING_PROGRESS_H_
#define AUTOLOCO_TESTS_BENCH_LEARNING_PROGRESS_H_

#include <chrono>
#include <cstdint>

#include "common/base/mutex.h"
#include "tests/bench/learning/arm.h"
#include "tests/bench/learning/run_result.h"

namespace autoloco::bench {

// Thread-safe. Work is counted in model steps.
class Progress {
 public:
  explicit Progress(std::uint64_t total);
  // Ends the line that is being rewritten, if any.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Add(std::uint64_t steps);
  // Work that need not be done.
  void Skip(std::uint64_t steps);
  // A line for a run that is complete.
  void Finished(const Arm& arm, std::uint64_t seed, const RunResult& result);

 private:
  void ShowState() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ClearState() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::chrono::steady_clock::time_point start_;
  const bool terminal_;
  Mutex mutex_;
  std::uint64_t left_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  bool shown_ ABSL_GUARDED_BY(mutex_) = false;
  std::chrono::steady_clock::time_point last_shown_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_LEARNING_PROGRESS_H_
