#include "tests/sim/scenario.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/sim/model.h"

namespace autoloco::sim {
namespace {

double& ChanceOf(Fault fault, Scenario* scenario) { return scenario->chances[static_cast<std::size_t>(fault)]; }

server::CoreConfig DrawCore(bool strict, std::uint32_t rounds, std::uint32_t workers, Dice* dice) {
  server::CoreConfig core;
  core.run_id = "run-1";
  core.protocol_version = 1;
  core.layout = ModelLayout();
  core.interval.steps = static_cast<std::uint32_t>(4 + dice->Below(5));
  core.interval.steps_min = 2;
  core.interval.steps_max = core.interval.steps * 2;
  core.interval.total_inner_steps = std::uint64_t{core.interval.steps} * rounds - dice->Below(2);
  core.interval.schedule = {
      .schedule = Schedule::kConstant, .learning_rate = kLearningRate, .total_steps = core.interval.total_inner_steps};
  core.outer.momentum.mu = 0.8;
  core.batch_size = kBatch;
  core.tokens_per_sample = kTokensPerSample;
  core.shared_data = dice->Chance(0.5);
  core.evaluation_windows = dice->Chance(0.5) ? 512 : 0;
  core.strict = strict;
  core.speed.matched = !strict;
  core.speed.tokens_per_step = kBatch * kTokensPerSample;
  core.min_workers = strict ? workers : static_cast<std::uint32_t>(1 + dice->Below(2));
  core.start_workers = strict ? workers : std::max<std::uint32_t>(core.min_workers, workers - 1);
  core.max_workers = 64;
  core.lease = absl::Seconds(15);
  core.disconnect_grace = absl::Seconds(3);
  core.join_timeout = absl::Seconds(600);
  core.finish_timeout = absl::Seconds(60);
  if (dice->Chance(0.7)) core.method.broadcast = {.codec = static_cast<std::uint8_t>(Codec::kRms4), .step = 1.5};
  core.broadcasts_kept = static_cast<std::uint32_t>(3 + dice->Below(6));
  core.checkpoint_every_rounds = static_cast<std::uint32_t>(1 + dice->Below(4));
  core.max_payload_bytes = 10000;
  return core;
}

void DrawWorkers(std::uint32_t count, Dice* dice, Scenario* scenario) {
  const absl::Duration step = dice->Between(absl::Milliseconds(300), absl::Milliseconds(900));
  for (std::uint32_t i = 0; i < count; ++i) {
    WorkerPlan worker;
    worker.name = absl::StrCat("w", i);
    worker.start = dice->Between(absl::ZeroDuration(), absl::Seconds(2));
    worker.step_time = step * dice->Between(0.9, 1.3);
    scenario->workers.push_back(worker);
  }
}

// Chances at every opportunity. Each kind is in about half of the scenarios, so that they also come alone.
void DrawChances(Dice* dice, Scenario* scenario) {
  constexpr struct {
    Fault fault;
    double chance;
  } kChances[] = {
      {Fault::kDelay, 0.01},           {Fault::kRequestLost, 0.03}, {Fault::kReplyLost, 0.04},
      {Fault::kDuplicated, 0.04},      {Fault::kReordered, 0.05},   {Fault::kTransferCut, 0.03},
      {Fault::kCorrupted, 0.02},       {Fault::kSlowSync, 0.04},    {Fault::kFailedWrite, 0.01},
      {Fault::kFailedCheckpoint, 0.1}, {Fault::kTornPayload, 0.6},  {Fault::kTornCheckpoint, 0.3},
      {Fault::kMachineLost, 0.15},
  };
  for (const auto& [fault, chance] : kChances) {
    if (dice->Chance(0.5)) ChanceOf(fault, scenario) = chance * dice->Between(0.5, 1.5);
  }
  if (!scenario->strict) {
    if (dice->Chance(0.3)) ChanceOf(Fault::kWorkerDiskLost, scenario) = 0.2;
    if (dice->Chance(0.3)) ChanceOf(Fault::kWorkerDiskTorn, scenario) = 0.01;
    if (dice->Chance(0.3)) ChanceOf(Fault::kWorkerWriteFailed, scenario) = 0.05;
  }
}

Fault DrawPlannedKind(bool strict, Dice* dice) {
  constexpr Fault kKinds[] = {
      Fault::kStreamCut,           Fault::kStreamCut,      Fault::kPartition,           Fault::kPartitionReset,
      Fault::kServerCrash,         Fault::kServerCrash,    Fault::kServerCrashAtEffect, Fault::kServerCrashAtEffect,
      Fault::kServerPause,         Fault::kServerShutdown, Fault::kWorkerCrash,         Fault::kWorkerCrash,
      Fault::kWorkerCrashAtEffect, Fault::kWorkerPause,    Fault::kWorkerLeave,         Fault::kWorkerZombie,
  };
  const Fault fault = kKinds[dice->Below(std::size(kKinds))];
  // A replacement on another machine has no state of the one before: not the same numbers.
  return strict && fault == Fault::kWorkerZombie ? Fault::kWorkerCrash : fault;
}

absl::Duration DrawLasting(Fault fault, Dice* dice) {
  switch (fault) {
    case Fault::kPartition:
    case Fault::kPartitionReset: return dice->Between(absl::Seconds(1), absl::Seconds(50));
    case Fault::kServerPause:
    case Fault::kWorkerPause: return dice->Between(absl::Seconds(1), absl::Seconds(30));
    case Fault::kWorkerZombie: return dice->Between(absl::Seconds(5), absl::Seconds(40));
    default: return dice->Between(absl::Milliseconds(200), absl::Seconds(20));
  }
}

void SortByTime(std::vector<PlannedFault>* planned) {
  std::stable_sort(planned->begin(), planned->end(),
                   [](const PlannedFault& a, const PlannedFault& b) { return a.at < b.at; });
}

void DrawPlanned(Dice* dice, Scenario* scenario) {
  const absl::Duration expected = scenario->workers[0].step_time * scenario->core.interval.total_inner_steps * 0.7;
  const std::uint64_t count = 2 + dice->Below(7);
  for (std::uint64_t i = 0; i < count; ++i) {
    PlannedFault fault;
    fault.at = dice->Between(absl::ZeroDuration(), expected);
    fault.fault = DrawPlannedKind(scenario->strict, dice);
    fault.victim = dice->Below(scenario->workers.size());
    fault.lasts = DrawLasting(fault.fault, dice);
    fault.effects = dice->Below(60);
    scenario->planned.push_back(fault);
  }
  SortByTime(&scenario->planned);
  scenario->faults_until = expected;
}

void DrawSkewAndLateness(Dice* dice, Scenario* scenario) {
  for (WorkerPlan& worker : scenario->workers) {
    if (dice->Chance(0.2)) {
      worker.clock_rate = dice->Between(0.9, 1.1);
      worker.clock_offset = dice->Between(absl::Seconds(-3600), absl::Seconds(3600));
    }
    if (dice->Chance(0.08)) worker.start = dice->Between(absl::Seconds(5), absl::Seconds(60));
  }
}

// What only elastic runs meet; from dice of its own, so that the rest of a scenario is the same with it and without.
void DrawElastic(std::uint64_t seed, Scenario* scenario) {
  if (scenario->strict) return;
  Dice dice(seed, 3);
  if (dice.Chance(0.5)) {
    scenario->core.late.apply = true;
    scenario->core.late.versions_max = static_cast<std::uint32_t>(1 + dice.Below(3));
    scenario->core.late.discount = dice.Between(0.0, 2.0);
  }
  scenario->core.norm.clip = dice.Chance(0.5);
  if (dice.Chance(0.6)) ChanceOf(Fault::kStraggler, scenario) = dice.Between(0.02, 0.1);
  if (dice.Chance(0.4)) ChanceOf(Fault::kNormOutlier, scenario) = dice.Between(0.01, 0.06);
  if (!dice.Chance(0.4)) return;
  for (std::uint64_t count = 1 + dice.Below(2); count > 0; --count) {
    PlannedFault fault;
    fault.at = dice.Between(absl::ZeroDuration(), scenario->faults_until);
    fault.fault = Fault::kEviction;
    fault.victim = dice.Below(scenario->workers.size());
    fault.lasts = dice.Between(absl::ZeroDuration(), absl::Seconds(20));
    scenario->planned.push_back(fault);
  }
  SortByTime(&scenario->planned);
}

Scenario DrawRun(std::uint64_t seed, bool strict, std::uint32_t workers) {
  Dice dice(seed, 1);
  Scenario scenario;
  scenario.seed = seed;
  scenario.strict = strict;
  scenario.rounds = static_cast<std::uint32_t>(12 + dice.Below(7));
  scenario.core = DrawCore(strict, scenario.rounds, workers, &dice);
  scenario.machine.control_timeout = absl::Seconds(10);
  scenario.heartbeat = absl::Seconds(2);
  scenario.data_seed = seed * 31 + 7;
  DrawWorkers(workers, &dice, &scenario);
  return scenario;
}

}  // namespace

Scenario DrawScenario(std::uint64_t seed) {
  Dice dice(seed, 2);
  const bool strict = dice.Chance(0.4);
  Scenario scenario = DrawRun(seed, strict, static_cast<std::uint32_t>(3 + dice.Below(6)));
  DrawSkewAndLateness(&dice, &scenario);
  DrawChances(&dice, &scenario);
  DrawPlanned(&dice, &scenario);
  DrawElastic(seed, &scenario);
  return scenario;
}

Scenario Undisturbed(const Scenario& scenario) {
  Scenario calm = scenario;
  calm.chances = {};
  calm.planned.clear();
  calm.faults_until = absl::ZeroDuration();
  for (WorkerPlan& worker : calm.workers) {
    worker.clock_rate = 1;
    worker.clock_offset = absl::ZeroDuration();
    worker.start = std::min(worker.start, absl::Duration(absl::Seconds(2)));
  }
  return calm;
}

Scenario KillPoint(std::uint64_t seed, std::uint64_t effects) {
  Scenario scenario = DrawRun(seed, true, 3);
  scenario.core.checkpoint_every_rounds = 3;
  scenario.planned.push_back({absl::ZeroDuration(), Fault::kServerCrashAtEffect, 0, absl::Seconds(2), effects});
  scenario.faults_until = absl::Seconds(600);  // long after the run
  return scenario;
}

}  // namespace autoloco::sim
