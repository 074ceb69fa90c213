// The learning rate never changes by more than the schedule's slope from one global step to the next, in no phase and
// at no boundary between two, whatever their lengths. It is a function of the global step alone, so that holds over a
// resume.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "common/base/random.h"
#include "common/base/schedule.h"
#include "gtest/gtest.h"

namespace autoloco {
namespace {

// Phases of every length, the empty ones included.
ScheduleConfig RandomSchedule(const RandomStream& random) {
  ScheduleConfig config;
  constexpr Schedule kKinds[] = {Schedule::kConstant, Schedule::kCosine, Schedule::kWsd};
  config.schedule = kKinds[random.Bits(0) % 3];
  config.learning_rate = std::exp2(-12 * random.Uniform(1));
  config.total_steps = 1 + random.Bits(2) % 400;
  config.warmup_steps = random.Bits(3) % (config.total_steps + 1) * (random.Bits(4) % 2);
  config.final_ratio = random.Uniform(5);
  config.decay_fraction = random.Uniform(6);
  return config;
}

// The steepest change from one step to the next that the schedule's formula allows.
double SteepestSlope(const ScheduleConfig& config) {
  const double peak = config.learning_rate;
  const double fall = peak * (1 - config.final_ratio);
  const double warmup = config.warmup_steps > 0 ? peak / static_cast<double>(config.warmup_steps) : 0;
  const double rest = std::max(1.0, static_cast<double>(config.total_steps - config.warmup_steps));
  if (config.schedule == Schedule::kConstant) return warmup;
  if (config.schedule == Schedule::kCosine) return std::max(warmup, std::numbers::pi / 2 * fall / rest);
  const double decay = std::min(config.decay_fraction * static_cast<double>(config.total_steps), rest);
  return std::max(warmup, fall / std::max(1.0, decay));
}

TEST(SchedulePropertyTest, NoStepJumpsInAnyPhase) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const ScheduleConfig config = RandomSchedule(RandomStream(seed, 1));
    const double slope = SteepestSlope(config) * (1 + 1e-9) + 1e-15;
    for (std::uint64_t step = 0; step + 1 < config.total_steps + 10; ++step) {
      const double change = LearningRateAt(config, step + 1) - LearningRateAt(config, step);
      ASSERT_LE(std::abs(change), slope) << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace autoloco
