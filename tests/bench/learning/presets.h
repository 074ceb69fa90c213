// The comparisons that are on offer.
#ifndef AUTOLOCO_TESTS_BENCH_LEARNING_PRESETS_H_
#define AUTOLOCO_TESTS_BENCH_LEARNING_PRESETS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/bench/learning/arm.h"

namespace autoloco::bench {

struct Preset {
  BenchSettings settings;
  std::uint32_t seeds = 4;
  std::vector<Arm> arms;
};

// The methods that others are compared with.
inline constexpr char kReferenceMethod[] = "diloco";
inline constexpr char kAutolocoMethod[] = "autoloco";

// smoke: seconds, to see that the program works. small: the main arms. claim: every arm.
// INVALID_ARGUMENT: no such preset; the message lists them.
absl::StatusOr<Preset> MakePreset(absl::string_view name);

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_LEARNING_PRESETS_H_
