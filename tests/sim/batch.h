// Many scenarios, one after another, and what came of them.
#ifndef AUTOLOCO_TESTS_SIM_BATCH_H_
#define AUTOLOCO_TESTS_SIM_BATCH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/bugs.h"
#include "tests/sim/faults.h"
#include "tests/sim/server_node.h"

namespace autoloco::sim {

struct BatchOptions {
  std::uint64_t first = 1;
  std::uint64_t seeds = 1;
  Bug bug = Bug::kNone;  // with one, the batch ends with the first violation
};

struct BatchResult {
  std::uint64_t scenarios = 0;
  std::uint64_t violations = 0;  // scenarios with one
  std::optional<std::uint64_t> first_failing_seed;
  std::vector<std::string> first_violations;  // of the first failing seeds
  std::uint64_t rounds = 0;                   // committed, in all
  FaultCounts faults{};
  DecisionCounts decisions;
  double seconds = 0;  // the caller's clock
};

BatchResult RunBatch(const BatchOptions& options);

std::string ToJson(const BatchResult& result);

}  // namespace autoloco::sim

#endif  // AUTOLOCO_TESTS_SIM_BATCH_H_
