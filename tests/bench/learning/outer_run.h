// The simulated run of the arms that synchronise through outer steps, and what it shares with the others.
#ifndef AUTOLOCO_TESTS_BENCH_LEARNING_OUTER_RUN_H_
#define AUTOLOCO_TESTS_BENCH_LEARNING_OUTER_RUN_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "common/base/schedule.h"
#include "tests/bench/learning/arm.h"
#include "tests/bench/learning/run_result.h"
#include "tests/bench/learning/simulation.h"

namespace autoloco::bench {

inline constexpr double kInitStd = 0.05;

ScheduleConfig InnerSchedule(const BenchSettings& settings, const Arm& arm);

// The largest change of the loss from one round to the next, among the rounds that ended after the warm-up. Negative
// where the loss only fell; 0 before the second round.
class JumpMeter {
 public:
  explicit JumpMeter(std::uint64_t warmup_steps) : warmup_steps_(warmup_steps) {}
  void Add(std::uint64_t steps_done, double loss);
  double worst() const { return worst_; }

 private:
  const std::uint64_t warmup_steps_;
  bool has_last_ = false;
  bool has_worst_ = false;
  double last_ = 0;
  double worst_ = 0;
};

// As SimulateRun, for Method::kOuter. OUT_OF_RANGE: the run diverged.
absl::StatusOr<RunResult> SimulateOuter(const BenchSettings& settings, const BenchData& data, const Arm& arm,
                                        std::uint64_t seed, const std::function<void(std::uint64_t)>& progress);

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_LEARNING_OUTER_RUN_H_
