// Every output of the server core, one struct each. The shell carries them out in the order given; where an order
// matters across effects, it is written here. An effect for a ticket or session that is gone is ignored.
//
// What a worker can see and what cannot be undone comes only once everything recorded before it is durable
// (durable_outbox.h); StoreRecords, AdmitPush and what only an operator sees comes at once.
#ifndef AUTOLOCO_SERVER_CORE_EFFECTS_H_
#define AUTOLOCO_SERVER_CORE_EFFECTS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "server/core/pull.h"
#include "server/core/reasons.h"
#include "server/core/records.h"
#include "server/core/round_record.h"
#include "server/core/start_commit.h"
#include "server/core/types.h"

namespace autoloco::server {

// ---------------------------------------------------------------------------------------------------- sessions
struct SendWelcome {
  Ticket session = 0;
  Incarnation incarnation = 0;
  Version version = 0;
  std::string view_digest = "";  // of that version
  // Whether the delta that Hello named may be sent, and why not; what is recorded of it.
  bool send_held = false;
  std::string held_reason = "";
  std::optional<PushOutcome> held_outcome = std::nullopt;
};
struct SendAssignment {
  Ticket session = 0;
  Assignment assignment;
};
struct SendRoundClosed {
  Ticket session = 0;
  Round round = 0;
  Version version = 0;
  std::string params_digest;
  std::string view_digest;
};
struct SendAbort {
  Ticket session = 0;
  Round round = 0;
  std::string reason;
};
struct SendDrain {
  Ticket session = 0;
  bool run_done = false;  // false: the server shuts down and will be back
  std::string reason;
};
// Ends the stream with a status once what was sent before has left. SessionClosed follows.
struct CloseSession {
  Ticket session = 0;
  absl::Status status;
};

// ---------------------------------------------------------------------------------------------------- pushes
// The payload may come: exactly `payload_bytes`. PushVerified or PushCancelled follows.
struct AdmitPush {
  Ticket ticket = 0;
  std::uint64_t payload_bytes = 0;
};
// Final. An accepted payload stays with the shell under its key (StoreRecords).
struct AnswerPush {
  Ticket ticket = 0;
  PushOutcome outcome = PushOutcome::kAccepted;
  std::string reason;
  bool replayed = false;
};
struct RefusePush {
  Ticket ticket = 0;
  absl::Status status;
  Reason reason = Reason::kRefused;
};
// The payload held under the ticket will not be used.
struct DropPayload {
  Ticket ticket = 0;
};
// Nor will the accepted one that is kept under this key.
struct DropSpooled {
  PushKey push;
};
// Nor will all accepted ones of rounds before `round`: two stored checkpoints are newer than they are.
struct DropSpooledBefore {
  Round round = 0;
};
struct AnswerPushStatus {
  Ticket ticket = 0;
  absl::Status status;  // not OK: refused, the rest is empty
  bool known = false;
  PushOutcome outcome = PushOutcome::kAccepted;
  std::string reason;
};

// ---------------------------------------------------------------------------------------------------- pulls
// REQUIRES of the shell: it has what it is told to send, but for a version that a commit since has made give way; that
// pull is refused with ABORTED.
struct ServePull {
  Ticket ticket = 0;
  PullForm form = PullForm::kNothing;
  Version version = 0;           // that the worker holds afterwards; live: the current one
  std::string view_digest = "";  // of that version; live: empty
  bool header_only = false;
  std::uint64_t first_block = 0;
  std::uint64_t block_count = 0;  // 0: to the end
};
struct RefusePull {
  Ticket ticket = 0;
  absl::Status status;
};

// ---------------------------------------------------------------------------------------------------- the operator
struct AnswerEvict {
  Ticket ticket = 0;
  absl::Status status;
};

// ---------------------------------------------------------------------------------------------------- slow work
// Make the records durable, all or none of them, after those of every earlier sequence; answered by RecordsStored. The
// payload of an accepted push (PushRecord) goes from its ticket to its key with this effect, is durable before the
// record is, and stays until DropSpooled or DropSpooledBefore. `sequence` rises by one, from 1 in every process.
struct StoreRecords {
  std::uint64_t sequence = 0;
  std::vector<Record> records;
};
// Store version snapshot.version: runs before any later StartCommit changes the parameters. Answered by
// CheckpointDone.
struct StartCheckpoint {
  CoreSnapshot snapshot;
};

// ---------------------------------------------------------------------------------------------------- what one sees
// A decision and its reason, for the log and the metrics.
struct Decision {
  DecisionKind kind = DecisionKind::kRun;
  Reason reason = Reason::kOpened;
  Round round = 0;
  WorkerId worker;   // empty: not about one worker
  std::string text;  // details for a person
};
struct RoundCommitted {
  Round round = 0;
  std::uint32_t applied = 0;
  std::uint32_t expected = 0;
  absl::Duration duration;  // from opening to commit
  absl::Duration wait;      // from the first delta to the last
  CommitStats stats;
  RoundRecord record;
};
struct EvaluationReady {
  EvaluationPoint point;
};
// Last effect of a run: the process drains its calls and ends with this code. 0 done or shut down on request,
// 75 too few workers (EX_TEMPFAIL), 1 failed.
struct RunFinished {
  int exit_code = 0;
  bool completed = false;  // all inner steps done: the workers say goodbye by themselves
  std::string reason;
};

using Effect = std::variant<SendWelcome, SendAssignment, SendRoundClosed, SendAbort, SendDrain, CloseSession, AdmitPush,
                            AnswerPush, RefusePush, DropPayload, DropSpooled, DropSpooledBefore, AnswerPushStatus,
                            AnswerEvict, ServePull, RefusePull, StoreRecords, StartCommit, StartCheckpoint, Decision,
                            RoundCommitted, EvaluationReady, RunFinished>;

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_EFFECTS_H_
