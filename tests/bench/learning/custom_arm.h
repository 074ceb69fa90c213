// Arms given by hand, for what no preset has.
#ifndef AUTOLOCO_TESTS_BENCH_LEARNING_CUSTOM_ARM_H_
#define AUTOLOCO_TESTS_BENCH_LEARNING_CUSTOM_ARM_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/bench/learning/arm.h"

namespace autoloco::bench {

// "NAME: key=value key=value ...", e.g. "long: policy=autoloco interval=28 power=0.5 momentum=0.85". What is not given
// is as in fixed H_ref on i.i.d. data with the cosine schedule. INVALID_ARGUMENT: names the part and lists the keys.
absl::StatusOr<Arm> ParseCustomArm(absl::string_view text);

// A line for each key, for --help.
std::string CustomArmHelp();

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_LEARNING_CUSTOM_ARM_H_
