// The command line of bench_learning.
#ifndef AUTOLOCO_TESTS_BENCH_LEARNING_OPTIONS_H_
#define AUTOLOCO_TESTS_BENCH_LEARNING_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace autoloco::bench {

struct Options {
  bool help = false;
  std::string text;  // empty: the dictionary in the cache folder
  std::string preset = "small";
  std::string arms;                      // regular expression; empty: all
  std::vector<std::string> custom_arms;  // custom_arm.h; beside the preset's
  bool list = false;
  std::optional<std::uint32_t> seeds;
  std::optional<std::uint64_t> steps;
  std::optional<std::uint32_t> rows;
  std::optional<double> momentum;  // instead of the tuned one
  std::uint32_t threads = 2;
  std::string results;  // empty: nothing is kept
  std::string json;
  std::string csv;
  std::string svg;
};

// INVALID_ARGUMENT names the argument and what was expected.
absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments);

std::string OptionsHelp();

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_LEARNING_OPTIONS_H_
