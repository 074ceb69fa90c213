#include "tests/bench/learning/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace autoloco::bench {
namespace {

constexpr double kTerminalSeconds = 0.5;
constexpr double kLogSeconds = 60;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Progress::Progress(std::uint64_t total)
    : start_(std::chrono::steady_clock::now()),
      terminal_(isatty(STDERR_FILENO) == 1),
      left_(total),
      last_shown_(start_) {}

Progress::~Progress() {
  const MutexLock lock(&mutex_);
  ClearState();
}

void Progress::Add(std::uint64_t steps) {
  const MutexLock lock(&mutex_);
  left_ -= std::min(left_, steps);
  done_ += steps;
  if (SecondsSince(last_shown_) >= (terminal_ ? kTerminalSeconds : kLogSeconds)) ShowState();
}

void Progress::Skip(std::uint64_t steps) {
  const MutexLock lock(&mutex_);
  left_ -= std::min(left_, steps);
}

void Progress::Finished(const Arm& arm, std::uint64_t seed, const RunResult& result) {
  const MutexLock lock(&mutex_);
  ClearState();
  std::fprintf(stderr, "%s, %s, %s, %s, seed %llu: loss %.4f, %llu rounds, %.0f s\n", arm.method.c_str(),
               ShardingName(arm.data), ScheduleName(arm.schedule), CodingName(arm).c_str(),
               static_cast<unsigned long long>(seed), result.loss, static_cast<unsigned long long>(result.rounds),
               result.seconds);
  ShowState();
}

void Progress::ShowState() {
  const double seconds = SecondsSince(start_);
  const double left = done_ > 0 ? seconds * static_cast<double>(left_) / static_cast<double>(done_) : 0;
  const double share = static_cast<double>(done_) / static_cast<double>(std::max<std::uint64_t>(1, done_ + left_));
  std::fprintf(stderr, "%s%5.1f %% done, %.1f min so far, about %.1f min left%s", terminal_ ? "\r" : "", 100 * share,
               seconds / 60, left / 60, terminal_ ? "   " : "\n");
  std::fflush(stderr);
  shown_ = terminal_;
  last_shown_ = std::chrono::steady_clock::now();
}

void Progress::ClearState() {
  if (shown_) std::fprintf(stderr, "\r%60s\r", "");
  shown_ = false;
}

}  // namespace autoloco::bench
