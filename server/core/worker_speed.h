// How fast each worker is, and how many inner steps make all of them finish together.
//
// What a worker needs for an interval is taken as  overhead + steps x step_seconds:  step_seconds from its reports and,
// while it trains, from its progress; overhead (pull, evaluation, push) from the time between assignment and delivery.
// Both are medians of the last few observations, so that one stalled step or transfer does not move them.
//
// The reference is the worker in the middle (of an even number: the faster of the two), which does exactly H steps.
// The others do what fits into its time, between ratio_min H and ratio_max H. Whoever would end within the dead band
// does exactly H as well: equal workers stay on DiLoCo's plain path, and noise of the clock does not take them off it.
// The learning rate's position advances by H per round, whatever a worker does.
#ifndef AUTOLOCO_SERVER_CORE_WORKER_SPEED_H_
#define AUTOLOCO_SERVER_CORE_WORKER_SPEED_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/core/types.h"

namespace autoloco::server {

struct SpeedSettings {
  bool matched = true;     // false: everybody does H steps
  double ratio_min = 0.1;  // of H
  double ratio_max = 2;
  double dead_band = 0.1;                              // of the reference's time
  absl::Duration tolerated_wait = absl::Seconds(0.5);  // a shorter wait is not worth unequal work
  std::uint64_t tokens_per_step = 0;                   // of one inner step, the same for all; 0: progress tells nothing
  double first_share_min = 0.1;  // least part of H that a joiner starts in the middle of a round for
};

// Not thread-safe; the core's own.
class WorkerSpeeds {
 public:
  explicit WorkerSpeeds(const SpeedSettings& settings) : settings_(settings) {}

  // A delivered interval; `duration` from assignment to delivery. What is not positive and finite teaches nothing.
  void ObserveDelivery(const std::string& worker, const IntervalReport& report, absl::Duration duration);
  // A heartbeat of a worker that trains.
  void ObserveProgress(const std::string& worker, const Progress& progress);
  // What a former process knew of the worker: counts as one observation.
  void Restore(const std::string& worker, double step_seconds, double overhead_seconds);
  // Speeds of workers that are gone for good.
  void Forget(const std::string& worker) { workers_.erase(worker); }

  // Empty where nothing is known of the worker.
  std::optional<double> StepSeconds(const std::string& worker) const;
  // The same with what is known of the others in its place; empty where nothing is known of anybody.
  std::optional<double> StepSecondsOrTypical(const std::string& worker) const;
  // Seconds of an interval beside its steps; where nothing is known of this worker, what is typical; else 0.
  double OverheadSeconds(const std::string& worker) const;

  struct Share {
    std::string worker;
    std::uint32_t steps = 0;
  };
  // Steps of each of `workers` in a round of `steps` (H), none above `steps_most`. In the order given.
  std::vector<Share> StepsForAll(std::span<const std::string> workers, std::uint32_t steps,
                                 std::uint64_t steps_most) const;

  // One worker of the open round, for the time at which the round can be expected to close.
  struct Running {
    std::string worker;
    std::uint32_t steps = 0;
    absl::Time assigned_at;
    std::uint32_t steps_done = 0;  // as last reported for this round; 0: nothing
    absl::Time reported_at;        // meaningful where steps_done > 0
  };
  // When the last of those that are still at work is expected to deliver; empty: nothing is known.
  std::optional<absl::Time> ExpectedClose(std::span<const Running> running) const;

  // Steps of the first interval of `worker`, which joins the open round of H = `steps` at `now`: what ends at `close`,
  // H at the most. 0: too little is left for work that would count (combination.h, kWorkShareMin), or nothing is known.
  std::uint32_t FirstInterval(const std::string& worker, std::uint32_t steps, absl::Time now,
                              std::optional<absl::Time> close) const;

 private:
  // The last few observations of one number.
  class Recent {
   public:
    void Add(double value);
    std::optional<double> Middle() const;

   private:
    std::deque<double> values_;
  };
  struct Worker {
    Recent step_seconds;
    Recent overhead;
    Round round = 0;               // of the last progress that counted
    std::uint32_t steps_done = 0;  // in it
  };

  double SecondsOf(const std::string& worker, double step_seconds, std::uint32_t steps) const;

  const SpeedSettings settings_;
  std::map<std::string, Worker> workers_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_WORKER_SPEED_H_
