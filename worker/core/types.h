// The nouns of a worker: plain values, no behaviour. Assignment and the reports mirror the messages of
// parameter_server.proto, which gives their units.
#ifndef AUTOLOCO_WORKER_CORE_TYPES_H_
#define AUTOLOCO_WORKER_CORE_TYPES_H_

#include <cstdint>
#include <string>

#include "common/base/ids.h"

namespace autoloco::worker {

// How this worker signs its messages; the name is the process's own and does not change.
struct Identity {
  std::string run_id;           // empty: any run
  Incarnation incarnation = 0;  // 0: joins anew
  bool operator==(const Identity&) const = default;
};

// One interval of work.
struct Assignment {
  Round round = 0;                // equals the version that the interval starts from
  std::uint32_t inner_steps = 0;  // 0: evaluate only
  std::uint64_t first_inner_step = 0;
  std::uint64_t first_sample = 0;
  std::uint64_t sample_count = 0;
  std::uint32_t evaluation_part = 0;
  std::uint32_t evaluation_parts = 0;  // 0: no evaluation
  bool operator==(const Assignment&) const = default;
};

// A delta under the key that it is sent by. What a worker kept of an earlier incarnation is named in Hello.
struct HeldDelta {
  Identity owner;  // the incarnation that it was trained as; never 0
  Assignment assignment;
  std::string digest;  // of the payload
  bool operator==(const HeldDelta&) const = default;
};

// Scalars of one finished interval.
struct IntervalReport {
  std::uint32_t inner_steps = 0;
  std::uint64_t tokens = 0;
  double learning_rate_sum = 0;
  double loss_mean = 0;           // nats a token
  double loss_first = 0;          // mean of the first min(16, H/4) steps, at least one
  double loss_last = 0;           // mean of the last ones
  double gradient_norm_mean = 0;  // before clipping
  double step_seconds_mean = 0;
  bool operator==(const IntervalReport&) const = default;
};

// This worker's part of the held-out windows of one version.
struct EvaluationPart {
  Version version = 0;
  double loss_sum = 0;  // nats
  std::uint64_t tokens = 0;
  bool operator==(const EvaluationPart&) const = default;
};

enum class WorkerPhase { kJoining, kTraining, kPushing, kWaiting, kPulling, kEvaluating };
const char* WorkerPhaseName(WorkerPhase phase);

// A worker that leaves sends what it has of its interval when that is at least this part of it: less is mostly noise,
// and left out of the sum (kWorkShareMin of server/core/combination.h).
inline constexpr std::uint32_t kPartialShareDivisor = 20;

// What a pull brought.
enum class PullForm {
  kNothing,    // the base is that of the current version
  kFull,       // all values of the current version
  kBroadcast,  // what turns one version into the next
  kLive,       // all blocks, each as of a version of its own
};
const char* PullFormName(PullForm form);

// What became of a push that arrived whole.
enum class PushOutcome { kAccepted, kLate, kStale, kNonFinite, kNormOutlier, kRoundAborted };
const char* PushOutcomeName(PushOutcome outcome);

// Exit codes of the program.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;   // this worker cannot train: engine failure, non-finite delta
inline constexpr int kExitRefused = 2;  // configuration: wrong run, layout, protocol, data; name taken over
inline constexpr int kExitGaveUp = 75;  // EX_TEMPFAIL: the server could not be reached for too long

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CORE_TYPES_H_
