// Virtual time in one thread: a queue of actions, run in the order of their times, and of their making where times are
// equal. Nothing in the simulation knows another clock, so a seed gives the same run everywhere.
#ifndef AUTOLOCO_TESTS_SIM_WORLD_H_
#define AUTOLOCO_TESTS_SIM_WORLD_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "common/base/random.h"

namespace autoloco::sim {

// Random numbers of one purpose, drawn one after another. Purposes keep streams of their own, so that a change in one
// part of a scenario disturbs the others as little as possible.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t stream) : stream_(seed, stream) {}

  double Uniform() { return stream_.Uniform(drawn_++); }  // [0, 1)
  bool Chance(double probability) { return Uniform() < probability; }
  // REQUIRES: n > 0.
  std::uint64_t Below(std::uint64_t n) { return stream_.Bits(drawn_++) % n; }
  double Between(double low, double high) { return low + (high - low) * Uniform(); }
  absl::Duration Between(absl::Duration low, absl::Duration high) { return low + (high - low) * Uniform(); }

 private:
  RandomStream stream_;
  std::uint64_t drawn_ = 0;
};

class World {
 public:
  using Action = std::function<void()>;

  absl::Time now() const { return now_; }
  // Runs `action` at `time`, or now where that has passed.
  void At(absl::Time time, Action action);
  void After(absl::Duration delay, Action action) { At(now_ + delay, std::move(action)); }
  // Runs the next action; false: there is none.
  bool RunNext();
  std::uint64_t actions() const { return actions_; }  // run so far

 private:
  struct Entry {
    absl::Time time;
    std::uint64_t order = 0;
    Action action;
  };
  static bool Later(const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  }

  absl::Time now_ = absl::UnixEpoch();
  std::uint64_t order_ = 0;
  std::uint64_t actions_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace autoloco::sim

#endif  // AUTOLOCO_TESTS_SIM_WORLD_H_
