// One scenario, drawn from a seed: who takes part, what the run is, and what will go wrong.
#ifndef AUTOLOCO_TESTS_SIM_SCENARIO_H_
#define AUTOLOCO_TESTS_SIM_SCENARIO_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/core/config.h"
#include "tests/sim/faults.h"
#include "worker/core/config.h"

namespace autoloco::sim {

struct WorkerPlan {
  std::string name;
  absl::Duration start;       // after the server's
  absl::Duration step_time;   // of one inner step
  absl::Duration clock_offset;
  double clock_rate = 1;      // its clock's seconds in one true second
};

struct PlannedFault {
  absl::Duration at;
  Fault fault = Fault::kServerCrash;
  std::size_t victim = 0;     // index of a worker, where it is about one
  absl::Duration lasts;       // until the restart, the continuation or the end of the partition
  std::uint64_t effects = 0;  // how many effects later, for crashes at an effect
};

struct Scenario {
  std::uint64_t seed = 0;
  bool strict = false;
  std::uint32_t rounds = 12;
  server::CoreConfig core;
  worker::MachineConfig machine;
  absl::Duration heartbeat;
  std::uint64_t data_seed = 0;
  std::vector<WorkerPlan> workers;
  std::array<double, kFaultKinds> chances{};
  std::vector<PlannedFault> planned;  // by time
  absl::Duration faults_until;        // liveness is asked for after this
};

Scenario DrawScenario(std::uint64_t seed);

// The same run with nothing going wrong.
Scenario Undisturbed(const Scenario& scenario);

// A strict run in which only the server crashes, after `effects` of its effects.
Scenario KillPoint(std::uint64_t seed, std::uint64_t effects);

}  // namespace autoloco::sim

#endif  // AUTOLOCO_TESTS_SIM_SCENARIO_H_
