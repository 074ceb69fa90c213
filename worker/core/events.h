// Every input of the worker's machine, one struct each. The shell makes them out of gRPC calls, finished work, signals
// and timers; the simulation makes them out of a seed. `session` and `ticket` are the numbers that the machine gave out
// in its effects: what comes under a number that is no longer in use is ignored.
#ifndef AUTOLOCO_WORKER_CORE_EVENTS_H_
#define AUTOLOCO_WORKER_CORE_EVENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "worker/core/types.h"

namespace autoloco::worker {

// ---------------------------------------------------------------------------------------------------- session
struct Welcomed {
  Ticket session = 0;
  Identity identity;
  Version version = 0;  // the server's current one
  absl::Duration heartbeat;
  bool partial_intervals = true;        // a worker that leaves may send what it has of its interval
  std::uint32_t late_versions_max = 0;  // a delta still counts so many versions after its round; 0: not at all
  // Whether the delta that Hello named may be sent under its key, why not, and what the server has recorded of it.
  bool send_held = false;
  std::string held_reason = "";
  std::optional<PushOutcome> held_outcome = std::nullopt;
};
struct Assigned {
  Ticket session = 0;
  Assignment assignment;
};
struct RoundClosed {
  Ticket session = 0;
  Round round = 0;
  Version version = 0;
};
// The interval of this round would not count.
struct Aborted {
  Ticket session = 0;
  Round round = 0;
  std::string reason;
};
// The server takes no more work.
struct Drained {
  Ticket session = 0;
  bool run_done = false;  // false: the server will be back
  std::string reason;
};
// The stream is over. Last event of a session; also follows CloseSession.
struct SessionEnded {
  Ticket session = 0;
  absl::Status status;
};

// ---------------------------------------------------------------------------------------------------- work
// Model built, data open. An error is final: INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION and PERMISSION_DENIED
// mean the configuration, others the machine.
struct Prepared {
  absl::Status status;
};
// OK: what the server sent is in the base buffer. On an error it may hold a part of it, and knows so: the next pull
// goes on from there.
struct PullEnded {
  Ticket ticket = 0;
  absl::Status status;
  bool probe = false;
  PullForm form = PullForm::kNothing;  // what was sent, or would have been to another than a probe; when OK
  // The base is `version` with `digest`, as the server has it. False: another pull has to follow; of a probe: the
  // server's current parameters are others.
  bool confirmed = false;
  Version version = 0;
  std::string digest = "";
};
struct EvaluationEnded {
  Round round = 0;
  absl::Status status;  // CANCELLED after CancelWork
  EvaluationPart part;  // when OK
};
// OK: what was trained waits for StartEncoding.
struct TrainingEnded {
  Round round = 0;
  absl::Status status;  // CANCELLED after CancelWork
};
// OK: the encoded delta waits for StartPush; where the worker has a folder for its state, it is saved. INVALID_ARGUMENT:
// the delta is not finite; names the first tensor that is not.
struct DeltaEncoded {
  Round round = 0;
  absl::Status status;
  std::string digest;  // of the encoded delta
};

// ---------------------------------------------------------------------------------------------------- push
struct PushEnded {
  Ticket ticket = 0;
  absl::Status status;
  PushOutcome outcome = PushOutcome::kAccepted;  // when OK, as is `reason`
  std::string reason;
};
struct PushStatusEnded {
  Ticket ticket = 0;
  absl::Status status;
  bool known = false;
  PushOutcome outcome = PushOutcome::kAccepted;  // when known, as is `reason`
  std::string reason;
};

// ---------------------------------------------------------------------------------------------------- the shell
struct StopRequested {
  std::string reason;
};
struct TimerFired {};  // NextDeadline() has passed

using Event =
    std::variant<Welcomed, Assigned, RoundClosed, Aborted, Drained, SessionEnded, Prepared, PullEnded, EvaluationEnded,
                 TrainingEnded, DeltaEncoded, PushEnded, PushStatusEnded, StopRequested, TimerFired>;

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CORE_EVENTS_H_
