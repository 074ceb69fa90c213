// The nouns of the server core: plain values, no behaviour.
#ifndef AUTOLOCO_SERVER_CORE_TYPES_H_
#define AUTOLOCO_SERVER_CORE_TYPES_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/core/interval_state.h"
#include "server/core/reasons.h"
#include "server/core/round_record.h"

namespace autoloco::server {

// One life of a worker.
struct WorkerId {
  std::string name;
  Incarnation incarnation = 0;
  auto operator<=>(const WorkerId&) const = default;
};

// What every message from a worker says of its sender.
struct Sender {
  std::string run_id;
  WorkerId worker;
};

// A push is known by this key: the same key is the same delta, or it is refused.
struct PushKey {
  WorkerId worker;
  Round round = 0;
  std::uint32_t fragment = 0;
  bool operator==(const PushKey&) const = default;
};

// Orders pushes by round, then by worker.
struct PushKeyOrder {
  bool operator()(const PushKey& a, const PushKey& b) const {
    return std::tie(a.round, a.worker, a.fragment) < std::tie(b.round, b.worker, b.fragment);
  }
};

// Scalars of one interval; IntervalReport of parameter_server.proto gives the units.
struct IntervalReport {
  std::uint32_t inner_steps = 0;
  std::uint64_t tokens = 0;
  double learning_rate_sum = 0;
  double loss_mean = 0;
  double loss_first = 0;
  double loss_last = 0;
  double gradient_norm_mean = 0;
  double step_seconds_mean = 0;
  // Numbers that are not a number are equal to each other here: they come from a worker and are kept as they are.
  bool operator==(const IntervalReport& other) const;
};

// What became of a push that arrived whole.
enum class PushOutcome { kAccepted, kLate, kStale, kNonFinite, kRoundAborted, kNormOutlier };

// One interval of work; Assignment of parameter_server.proto says what each number means.
struct Assignment {
  Round round = 0;
  std::uint32_t inner_steps = 0;  // 0: evaluate only
  std::uint64_t first_inner_step = 0;
  std::uint64_t first_sample = 0;
  std::uint64_t sample_count = 0;
  std::uint32_t evaluation_part = 0;
  std::uint32_t evaluation_parts = 0;  // 0: no evaluation
  bool operator==(const Assignment&) const = default;
};

// A worker's part of the held-out loss of one version.
struct EvaluationPart {
  Version version = 0;
  double loss_sum = 0;  // nats
  std::uint64_t tokens = 0;
  bool operator==(const EvaluationPart& other) const;  // as IntervalReport's
};

struct EvaluationPoint {
  Version version = 0;
  std::uint64_t inner_step = 0;
  double loss = 0;  // nats a token
  std::uint64_t tokens = 0;
  bool operator==(const EvaluationPoint&) const = default;
};

enum class WorkerPhase { kJoining, kTraining, kPushing, kWaiting, kPulling, kEvaluating };

// What a worker reports with every heartbeat.
struct Progress {
  WorkerPhase phase = WorkerPhase::kJoining;
  Round round = 0;
  std::uint32_t steps_done = 0;
  double loss = 0;
  double tokens_per_second = 0;
  double compute_share = 0;
  std::optional<EvaluationPart> evaluation;
};

// Numbers of a commit, for metrics and the interval control; norms are L2, in fp64.
struct CommitStats {
  double mean_delta_norm = 0;
  double momentum_norm = 0;
  double parameter_norm = 0;
  std::map<std::string, double> delta_norm_by_worker;
  bool operator==(const CommitStats&) const = default;
};

enum class RunPhase { kWaiting, kTraining, kCommitting, kFinishing, kDone, kDraining };

// The name used in logs and labels, e.g. "non_finite".
const char* PushOutcomeName(PushOutcome outcome);

// Where the next sample leases begin.
struct DataCursors {
  std::uint64_t next_sample = 0;                               // shared data
  std::map<std::string, std::uint64_t> next_sample_by_worker;  // own data
  bool operator==(const DataCursors&) const = default;
};

// How far a run is, but for what grows with its length.
struct RunProgress : DataCursors {
  Version version = 0;
  std::uint64_t inner_steps_done = 0;
  Incarnation next_incarnation = 1;
  std::uint64_t rounds_aborted = 0;
  std::uint64_t worker_inner_steps = 0;  // of all accepted deltas
  IntervalState interval;
  bool operator==(const RunProgress&) const = default;
};

// What every checkpoint stores of the core: enough to go on from there when nothing else is left. Valid between rounds.
struct CoreSnapshot : RunProgress {
  std::vector<EvaluationPoint> evaluations;
  std::vector<RoundRecord> history;  // every committed round
  bool operator==(const CoreSnapshot&) const = default;
};

// Tokens of all leases so far; at any time leased = applied + late + rejected + lost + unused + outstanding, the last
// being the leases that have not ended.
struct LedgerTotals {
  std::uint64_t leased = 0;
  std::uint64_t applied = 0;
  std::uint64_t late = 0;
  std::uint64_t rejected = 0;
  std::uint64_t lost = 0;
  std::uint64_t unused = 0;  // of leases whose delta came: what was not trained on
  bool operator==(const LedgerTotals&) const = default;
};

enum class WorkerState { kJoining, kTraining, kPushing, kWaiting, kStale, kLeft };
const char* WorkerStateName(WorkerState state);

struct WorkerStatus {
  WorkerId worker;
  WorkerState state = WorkerState::kJoining;
  bool alive = false;
  Version base_version = 0;
  std::uint32_t steps_done = 0;
  std::uint32_t steps_target = 0;
  double loss = 0;
  double tokens_per_second = 0;
  double compute_share = 0;
  std::uint64_t tokens = 0;  // of all its accepted deltas
  double share = 0;          // in the last commit
  double step_seconds = 0;   // as measured; 0: not known
  absl::Time last_seen;
  std::string reason;
};

// The whole run at one instant, for GetStatus and the metrics.
struct RunStatus {
  RunPhase phase = RunPhase::kWaiting;
  std::string reason;
  Version version = 0;
  Round round = 0;
  std::uint64_t inner_steps_done = 0;
  std::uint64_t inner_steps_total = 0;
  std::uint32_t interval_steps = 0;
  std::string interval_reason;  // why it is this long, with the numbers behind it; empty before the first round
  std::uint32_t alive = 0;
  std::uint32_t assigned = 0;
  std::uint32_t contributed = 0;
  std::uint32_t applied = 0;
  std::uint32_t quorum = 0;            // deltas of the open round that set its deadline
  absl::Time opened_at;                // meaningful while a round is open
  std::optional<absl::Time> deadline;  // of the open round
  std::string deadline_reason;         // why it is then, with the numbers behind it
  std::uint64_t rounds_committed = 0;
  std::uint64_t rounds_aborted = 0;
  std::uint64_t worker_inner_steps = 0;
  LedgerTotals ledger;
  std::uint64_t ledger_outstanding = 0;  // tokens of leases that have not ended
  std::vector<WorkerStatus> workers;     // by name
  std::vector<EvaluationPoint> evaluations;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_TYPES_H_
