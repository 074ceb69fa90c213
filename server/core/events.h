// Every input of the server core, one struct each. The shell makes them out of gRPC calls, timers and finished work;
// the simulation makes them out of a seed. A `session` or `ticket` names the call that an effect will answer.
#ifndef AUTOLOCO_SERVER_CORE_EVENTS_H_
#define AUTOLOCO_SERVER_CORE_EVENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/tensor/layout.h"
#include "server/core/pull.h"
#include "server/core/types.h"

namespace autoloco::server {

// ---------------------------------------------------------------------------------------------------- sessions
// A delta of an earlier life that its worker still has.
struct HeldDelta {
  std::string run_id;
  Incarnation incarnation = 0;
  Round round = 0;
  std::uint32_t fragment = 0;
  std::string payload_digest;
};
// First message of a session.
struct HelloReceived {
  Ticket session = 0;
  Sender sender;  // incarnation 0: joins; else: reconnects
  std::uint32_t protocol_version = 0;
  std::optional<HeldDelta> held = std::nullopt;
};
struct ReadyReceived {
  Ticket session = 0;
  Sender sender;
  Layout layout;
  Version version = 0;
  std::uint64_t data_samples = 0;
  std::uint64_t data_hash = 0;
};
struct ProgressReceived {
  Ticket session = 0;
  Sender sender;
  Progress progress;
};
struct GoodbyeReceived {
  Ticket session = 0;
  Sender sender;
  std::string reason;
};
// The stream is over, for whatever reason; also after the core closed it. Last event of a session.
struct SessionClosed {
  Ticket session = 0;
};

// ---------------------------------------------------------------------------------------------------- pushes
// The header of a push; its bytes wait until AdmitPush.
struct PushOpened {
  Ticket ticket = 0;
  Sender sender;
  Round round = 0;
  std::uint32_t fragment = 0;
  std::string payload_digest;
  std::uint64_t payload_bytes = 0;
  std::uint64_t layout_hash = 0;
  bool codec_matches = true;  // the run's codec
  bool leaving = false;       // the worker's last one: it may report fewer steps than it was assigned
  IntervalReport report;
};
// The payload of an admitted push arrived whole and was checked: OK, or DATA_LOSS (checksum, digest),
// INVALID_ARGUMENT or OUT_OF_RANGE (size, order, format). The shell holds the payload under the ticket until
// DropPayload, or until StoreRecords says under which key it stays.
struct PushVerified {
  Ticket ticket = 0;
  absl::Status status;
  bool finite = true;
  std::string non_finite;  // tensor and index, where not finite
  double norm = 0;         // L2, in fp64, where OK and finite
};
// The caller went away before an answer. Not sent after AnswerPush or RefusePush.
struct PushCancelled {
  Ticket ticket = 0;
};
struct PushStatusAsked {
  Ticket ticket = 0;
  Sender sender;
  Round round = 0;
  std::uint32_t fragment = 0;
};

// ---------------------------------------------------------------------------------------------------- pulls
// What the worker holds, and what it asks for (pull_choice.h).
struct PullOpened {
  Ticket ticket = 0;
  Sender sender = {};
  Version held_version = 0;
  std::string held_digest = "";  // of all values held; empty: it holds nothing, or is mixed
  bool held_mixed = false;       // blocks of several versions, held_version being the oldest
  bool header_only = false;      // only find out what would be sent
  PullPart part = {};
};

// Bytes moved for this worker: they renew its lease. The shell sends it at most once a second and transfer.
struct WorkerHeard {
  Sender sender;
};

// ---------------------------------------------------------------------------------------------------- the shell
struct CommitDone {
  Round round = 0;
  std::string params_digest;  // of version round + 1
  std::string view_digest;    // of what every worker will hold as that version
  CommitStats stats;
};
struct CheckpointDone {
  Version version = 0;
  absl::Status status;
};
// All records up to this sequence are durable.
struct RecordsStored {
  std::uint64_t sequence = 0;
};
struct TimerFired {};  // NextDeadline() has passed
struct ShutdownRequested {
  std::string reason;
};
// The operator ends a worker's life, or lets its name in again. AnswerEvict follows.
struct EvictAsked {
  Ticket ticket = 0;
  std::string worker;
  bool readmit = false;
};

using Event = std::variant<HelloReceived, ReadyReceived, ProgressReceived, GoodbyeReceived, SessionClosed, PushOpened,
                           PushVerified, PushCancelled, PushStatusAsked, PullOpened, WorkerHeard, CommitDone,
                           CheckpointDone, RecordsStored, TimerFired, ShutdownRequested, EvictAsked>;

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_EVENTS_H_
