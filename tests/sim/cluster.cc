#include "tests/sim/cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace autoloco::sim {
namespace {

constexpr absl::Duration kLivenessLimit = absl::Seconds(900);  // from the end of the faults to the end of the run
constexpr absl::Duration kFarewell = absl::Seconds(20);        // the server's, to workers that are still there
constexpr absl::Duration kContributeWithin = absl::Seconds(60);
constexpr absl::Duration kOperatorPause = absl::Seconds(2);    // before an operator asks again
constexpr absl::Duration kRefusalTravels = absl::Seconds(60);  // a partition may hold it up
constexpr absl::Duration kOnTime = absl::Seconds(2);  // a worker that starts later is late

}  // namespace

Cluster::Cluster(const Scenario& scenario, Bug bug, std::FILE* trace)
    : scenario_(scenario),
      trace_(&world_, trace),
      faults_(scenario.seed),
      checkers_(scenario, &trace_),
      network_(&world_, &faults_, &trace_, scenario.seed),
      bug_(bug) {
  faults_.chances = scenario.chances;
  server_ = std::make_unique<ServerNode>(
      ServerNode::Tools{&scenario_, &world_, &network_, &faults_, &trace_, &checkers_, &disk_, bug});
  for (std::size_t i = 0; i < scenario.workers.size(); ++i) slots_.push_back({.node = NewWorker(i), .zombies = {}});
}

WorkerNode::Tools Cluster::WorkerTools() {
  return {&scenario_, &world_, &network_, &faults_, &trace_, &checkers_, bug_};
}

std::unique_ptr<WorkerNode> Cluster::NewWorker(std::size_t index) {
  worker_disks_.push_back(std::make_unique<WorkerDisk>());
  worker_disks_.back()->lineage = checkers_.NewLineage();
  return std::make_unique<WorkerNode>(WorkerTools(), scenario_.workers[index], worker_disks_.back().get());
}

void Cluster::StartAll() {
  server_->Start();
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const WorkerPlan& plan = scenario_.workers[i];
    if (plan.start > kOnTime) faults_.Count(Fault::kLateStart);
    if (plan.clock_rate != 1) faults_.Count(Fault::kClockSkew);
    slots_[i].restarting = true;
    world_.After(plan.start, [this, i] {
      slots_[i].restarting = false;
      if (!slots_[i].node->running()) slots_[i].node->Start();
    });
  }
  for (const PlannedFault& fault : scenario_.planned) {
    world_.After(fault.at, [this, &fault] { DoFault(fault); });
  }
  world_.After(scenario_.faults_until, [this] { StopFaults(); });
}

// ---------------------------------------------------------------------------------------------------- faults

void Cluster::DoFault(const PlannedFault& fault) {
  if (completed_at_) return;
  trace_.Line("fault", FaultName(fault.fault), scenario_.workers[fault.victim].name, " lasts ",
              absl::FormatDuration(fault.lasts));
  switch (fault.fault) {
    case Fault::kServerCrash:
    case Fault::kServerCrashAtEffect:
    case Fault::kServerPause:
    case Fault::kServerShutdown: DoServerFault(fault); return;
    case Fault::kEviction: Evict(fault); return;
    default: DoWorkerFault(fault); return;
  }
}

void Cluster::DoServerFault(const PlannedFault& fault) {
  if (!server_->running() || server_->finished()) return;
  if (fault.fault != Fault::kServerCrashAtEffect) faults_.Count(fault.fault);  // that one counts when it strikes
  server_down_for_ = fault.lasts;
  switch (fault.fault) {
    case Fault::kServerCrash: server_->Kill(faults_.Strikes(Fault::kMachineLost)); return;
    case Fault::kServerCrashAtEffect: server_->KillAfterEffects(fault.effects); return;
    case Fault::kServerPause:
      server_->Pause();
      world_.After(fault.lasts, [this] { server_->Continue(); });
      return;
    default: server_->Terminate(); return;
  }
}

void Cluster::DoWorkerFault(const PlannedFault& fault) {
  Slot& slot = slots_[fault.victim];
  WorkerNode* node = slot.node.get();
  if (!node->running() || node->paused()) return;
  if (fault.fault != Fault::kWorkerCrashAtEffect) faults_.Count(fault.fault);
  slot.down_for = fault.lasts;
  switch (fault.fault) {
    case Fault::kStreamCut: network_.CutStreams(node->client()); return;
    case Fault::kPartition: network_.Partition(node->client(), fault.lasts, false); return;
    case Fault::kPartitionReset: network_.Partition(node->client(), fault.lasts, true); return;
    case Fault::kWorkerCrash: node->Kill(faults_.Strikes(Fault::kMachineLost)); return;
    case Fault::kWorkerCrashAtEffect: node->KillAfterEffects(fault.effects % 16); return;
    case Fault::kWorkerPause:
      node->Pause();
      world_.After(fault.lasts, [node] { node->Continue(); });
      return;
    case Fault::kWorkerLeave: node->Terminate(); return;
    default: MakeZombie(fault); return;
  }
}

// The worker stops, another machine takes over its name, and then it goes on.
void Cluster::MakeZombie(const PlannedFault& fault) {
  const std::size_t index = fault.victim;
  Slot& slot = slots_[index];
  WorkerNode* zombie = slot.node.get();
  zombie->Pause();
  slot.zombies.push_back(std::move(slot.node));
  slot.node = NewWorker(index);
  slot.node->Start();
  world_.After(fault.lasts, [zombie] { zombie->Continue(); });
}

void Cluster::Evict(const PlannedFault& fault) {
  Slot& slot = slots_[fault.victim];
  if (slot.eviction != Slot::Eviction::kNone) return;
  slot.eviction = Slot::Eviction::kAsked;
  slot.eviction_lasts = fault.lasts;
  slot.refused_until = absl::InfiniteFuture();
  Operate(fault.victim);
}

void Cluster::Operate(std::size_t index) {
  const Slot& slot = slots_[index];
  if (slot.eviction == Slot::Eviction::kNone || completed_at_) return;
  if (slot.eviction != Slot::Eviction::kInForce && server_->running()) {
    const bool readmit = slot.eviction == Slot::Eviction::kEnding;
    server_->Ask({scenario_.workers[index].name, readmit},
                 [this, index, readmit](const absl::Status& status) { OnOperatorAnswered(index, readmit, status); });
  }
  world_.After(kOperatorPause, [this, index] { Operate(index); });
}

void Cluster::OnOperatorAnswered(std::size_t index, bool readmit, const absl::Status& status) {
  Slot& slot = slots_[index];
  if (slot.eviction != (readmit ? Slot::Eviction::kEnding : Slot::Eviction::kAsked)) return;
  if (readmit || !status.ok()) {
    slot.eviction = Slot::Eviction::kNone;
    slot.refused_until = world_.now() + kRefusalTravels;
    return;
  }
  faults_.Count(Fault::kEviction);
  // One that is answered after the faults have stopped ends at once.
  slot.eviction = faults_.on() ? Slot::Eviction::kInForce : Slot::Eviction::kEnding;
  world_.After(slot.eviction_lasts, [this, index] {
    if (slots_[index].eviction == Slot::Eviction::kInForce) slots_[index].eviction = Slot::Eviction::kEnding;
  });
}

void Cluster::StopFaults() {
  trace_.Line("fault", "none_any_more");
  faults_.Stop();
  network_.Heal();
  stopped_at_ = world_.now();
  checkers_.OnFaultsStopped();
  server_->SpareIt();
  server_down_for_ = absl::Milliseconds(100);
  if (server_->paused()) server_->Continue();
  for (Slot& slot : slots_) {
    slot.node->SpareIt();
    if (slot.eviction == Slot::Eviction::kInForce) slot.eviction = Slot::Eviction::kEnding;
    slot.down_for = absl::Milliseconds(100);
    if (slot.node->paused()) slot.node->Continue();
    for (auto& zombie : slot.zombies) {
      if (zombie->paused()) zombie->Continue();
    }
  }
}

// ---------------------------------------------------------------------------------------------------- supervision

void Cluster::Supervise() {
  SuperviseServer();
  for (std::size_t i = 0; i < slots_.size(); ++i) SuperviseWorker(i);
}

void Cluster::SuperviseServer() {
  const auto finished = server_->finished();
  if (finished && finished->completed && !completed_at_) completed_at_ = world_.now();
  if (server_->running() || server_restarting_ || completed_at_) return;
  // A disk without room for the last checkpoint ends the process with 1; it is started again.
  const bool no_checkpoint = faults_.counts()[static_cast<std::size_t>(Fault::kFailedCheckpoint)] > 0;
  if (finished && finished->exit_code != 0 && !(finished->exit_code == 1 && no_checkpoint)) {
    checkers_.Violate("liveness", absl::StrCat("the server ended with ", finished->exit_code, ": ", finished->reason));
  }
  server_restarting_ = true;
  world_.After(server_down_for_, [this] {
    server_restarting_ = false;
    server_->Start();
  });
}

void Cluster::SuperviseWorker(std::size_t index) {
  Slot& slot = slots_[index];
  WorkerNode* node = slot.node.get();
  if (node->running() || slot.restarting || slot.done) return;
  const std::optional<int> exit_code = node->exit_code();
  if (exit_code == worker::kExitDone && completed_at_) {
    slot.done = true;
    return;
  }
  const bool shut_out = exit_code == worker::kExitRefused && world_.now() < slot.refused_until;
  if (exit_code && *exit_code != worker::kExitDone && slot.zombies.empty() && !shut_out) {
    checkers_.Violate("liveness", absl::StrCat(node->name(), " ended with ", *exit_code));
  }
  slot.restarting = true;
  world_.After(slot.down_for, [this, index] {
    slots_[index].restarting = false;
    if (!completed_at_) slots_[index].node->Start();
  });
}

// ---------------------------------------------------------------------------------------------------- the run

bool Cluster::Over() {
  if (!checkers_.ok()) return true;
  if (completed_at_) {
    const bool all_done =
        std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.done || !slot.node->running(); });
    return all_done || world_.now() - *completed_at_ > kFarewell;
  }
  if (world_.now() - stopped_at_ > kLivenessLimit) {
    checkers_.Violate("liveness",
                      absl::StrCat("version ", checkers_.version(), " of ", scenario_.rounds, " after all that time"));
    return true;
  }
  return false;
}

void Cluster::CheckEnd() {
  if (!checkers_.ok()) return;
  if (!completed_at_) {
    checkers_.Violate("liveness", absl::StrCat("nothing happens any more at version ", checkers_.version()));
    return;
  }
  if (*completed_at_ - stopped_at_ < kContributeWithin) return;
  for (const WorkerPlan& worker : scenario_.workers) {
    if (checkers_.Contributions(worker.name) > 0) continue;
    checkers_.Violate("liveness", absl::StrCat(worker.name, " contributed to no round after the faults"));
  }
}

Result Cluster::Run() {
  StartAll();
  while (!Over() && world_.RunNext()) Supervise();
  CheckEnd();
  Result result;
  result.violations = checkers_.violations();
  result.faults = faults_.counts();
  result.decisions = server_->decisions();
  result.version = checkers_.version();
  result.final_digest = checkers_.DigestsOfVersion(result.version).params;
  result.trace_hash = trace_.hash();
  result.server_effects = server_->effects_done();
  result.lasted = world_.now() - absl::UnixEpoch();
  return result;
}

Result RunScenario(const Scenario& scenario, Bug bug, std::FILE* trace) { return Cluster(scenario, bug, trace).Run(); }

Result RunSeed(std::uint64_t seed, Bug bug, std::FILE* trace) {
  const Scenario scenario = DrawScenario(seed);
  Result result = RunScenario(scenario, bug, trace);
  if (!scenario.strict || !result.violations.empty()) return result;
  const Result calm = RunScenario(Undisturbed(scenario), Bug::kNone, nullptr);
  if (!calm.violations.empty()) {
    result.violations.push_back(absl::StrCat("undisturbed: ", calm.violations.front()));
  } else if (calm.version != result.version || calm.final_digest != result.final_digest) {
    result.violations.push_back(absl::StrCat("digest: the run ends with version ", result.version, " ",
                                             result.final_digest, ", undisturbed with ", calm.version, " ",
                                             calm.final_digest));
  }
  return result;
}

}  // namespace autoloco::sim
