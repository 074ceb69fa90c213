// One run of a scenario: the server, its workers, a supervisor that starts again what has ended, the planned faults, and
// the end: the run must complete once nothing goes wrong any more.
#ifndef AUTOLOCO_TESTS_SIM_CLUSTER_H_
#define AUTOLOCO_TESTS_SIM_CLUSTER_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/bugs.h"
#include "tests/sim/checkers.h"
#include "tests/sim/faults.h"
#include "tests/sim/network.h"
#include "tests/sim/scenario.h"
#include "tests/sim/server_disk.h"
#include "tests/sim/server_node.h"
#include "tests/sim/trace.h"
#include "tests/sim/worker_node.h"
#include "tests/sim/world.h"

namespace autoloco::sim {

struct Result {
  std::vector<std::string> violations;
  FaultCounts faults{};
  DecisionCounts decisions;
  std::string final_digest;          // of the last durable version
  Version version = 0;
  std::uint64_t trace_hash = 0;
  std::uint64_t server_effects = 0;  // carried out, in all its processes
  absl::Duration lasted;             // virtual time
};

// `trace`: where every event is printed; null: nowhere.
Result RunScenario(const Scenario& scenario, Bug bug, std::FILE* trace);

// Draws the seed's scenario and runs it. A strict one must end with the digest of the run that nothing disturbs.
Result RunSeed(std::uint64_t seed, Bug bug, std::FILE* trace);

class Cluster {
 public:
  Cluster(const Scenario& scenario, Bug bug, std::FILE* trace);
  Result Run();

 private:
  struct Slot {  // one worker's name
    std::unique_ptr<WorkerNode> node;
    std::vector<std::unique_ptr<WorkerNode>> zombies;  // replaced, and still there
    absl::Duration down_for = absl::Seconds(1);        // until the supervisor's next restart
    bool restarting = false;
    bool done = false;                                 // exited because the run is over
    // The operator's doing: asked for and not answered; in force; to be ended, perhaps without having begun.
    enum class Eviction { kNone, kAsked, kInForce, kEnding } eviction = Eviction::kNone;
    absl::Duration eviction_lasts = absl::ZeroDuration();
    absl::Time refused_until = absl::InfinitePast();  // until then it may find itself shut out
  };

  WorkerNode::Tools WorkerTools();
  std::unique_ptr<WorkerNode> NewWorker(std::size_t index);
  void StartAll();
  void DoFault(const PlannedFault& fault);
  void DoServerFault(const PlannedFault& fault);
  void DoWorkerFault(const PlannedFault& fault);
  void MakeZombie(const PlannedFault& fault);
  void Evict(const PlannedFault& fault);
  // The operator of this worker's eviction: asks the server until it answers.
  void Operate(std::size_t index);
  void OnOperatorAnswered(std::size_t index, bool readmit, const absl::Status& status);
  void StopFaults();
  // Restarts what has ended; looks at exit codes.
  void Supervise();
  void SuperviseServer();
  void SuperviseWorker(std::size_t index);
  // Whether the run is over, well or not.
  bool Over();
  void CheckEnd();

  const Scenario& scenario_;
  World world_;
  Trace trace_;
  Faults faults_;
  Checkers checkers_;
  Network network_;
  ServerDisk disk_;
  std::unique_ptr<ServerNode> server_;
  std::vector<std::unique_ptr<WorkerDisk>> worker_disks_;
  std::vector<Slot> slots_;
  const Bug bug_;
  absl::Duration server_down_for_ = absl::Seconds(1);
  bool server_restarting_ = false;
  std::optional<absl::Time> completed_at_;
  absl::Time stopped_at_ = absl::InfiniteFuture();
};

}  // namespace autoloco::sim

#endif  // AUTOLOCO_TESTS_SIM_CLUSTER_H_
