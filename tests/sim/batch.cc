#include "tests/sim/batch.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/sim/cluster.h"

namespace autoloco::sim {

BatchResult RunBatch(const BatchOptions& options) {
  constexpr std::size_t kTextsMax = 20;
  BatchResult batch;
  for (std::uint64_t seed = options.first; seed < options.first + options.seeds; ++seed) {
    const Result result = RunSeed(seed, options.bug, nullptr);
    ++batch.scenarios;
    batch.rounds += result.version;
    for (std::size_t kind = 0; kind < kFaultKinds; ++kind) batch.faults[kind] += result.faults[kind];
    for (const auto& [reason, count] : result.decisions) batch.decisions[reason] += count;
    if (result.violations.empty()) continue;
    ++batch.violations;
    if (!batch.first_failing_seed) batch.first_failing_seed = seed;
    if (batch.first_violations.size() < kTextsMax) {
      batch.first_violations.push_back(absl::StrCat("seed ", seed, ": ", result.violations.front()));
    }
    if (options.bug != Bug::kNone) break;
  }
  return batch;
}

std::string ToJson(const BatchResult& result) {
  nlohmann::ordered_json json;
  json["scenarios"] = result.scenarios;
  json["violations"] = result.violations;
  json["first_failing_seed"] = nullptr;
  if (result.first_failing_seed) json["first_failing_seed"] = *result.first_failing_seed;
  json["seconds"] = result.seconds;
  json["rounds"] = result.rounds;
  std::uint64_t faults = 0;
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    faults += result.faults[kind];
    json["faults"][FaultName(static_cast<Fault>(kind))] = result.faults[kind];
  }
  json["faults_per_scenario"] =
      static_cast<double>(faults) / static_cast<double>(std::max<std::uint64_t>(1, result.scenarios));
  json["decisions"] = result.decisions;
  return json.dump(2);
}

}  // namespace autoloco::sim
