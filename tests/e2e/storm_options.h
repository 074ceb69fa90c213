// The command line of `storm`.
#ifndef AUTOLOCO_TESTS_E2E_STORM_OPTIONS_H_
#define AUTOLOCO_TESTS_E2E_STORM_OPTIONS_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace autoloco::test {

// What a storm must hold. Scaled-down storms have less of everything, and bounds to suit.
struct StormBounds {
  double committed_share_min = 0.97;
  double participation_min = 0.9;
  double restart_seconds_max = 10;
  double memory_growth_max = 1.25;  // last over first
};

struct StormOptions {
  bool help = false;
  std::uint32_t workers = 16;
  double minutes = 3;
  std::uint64_t seed = 1;
  std::string json;                 // file for the results; empty: none
  std::uint32_t server_every = 10;  // every so many kills it is the server's turn; 0: never
  std::uint32_t step_ms = 500;      // four steps make an interval
  absl::Duration kill_pause = absl::Seconds(3);
  absl::Duration restart_pause = absl::Seconds(1);
  StormBounds bounds;
};

// INVALID_ARGUMENT names the argument and what was expected.
absl::StatusOr<StormOptions> ParseStormOptions(std::span<const std::string> arguments);

std::string StormUsage();

// Whom the kill with this number, counted from 0, hits: a worker's index, or -1 for the server. A function of the seed.
int StormVictim(const StormOptions& options, std::uint64_t kill);

}  // namespace autoloco::test

#endif  // AUTOLOCO_TESTS_E2E_STORM_OPTIONS_H_
