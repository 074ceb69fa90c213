// Every output of the worker's machine, one struct each, carried out in the order given. An effect for a session that
// has ended meanwhile is ignored by the shell.
#ifndef AUTOLOCO_WORKER_CORE_EFFECTS_H_
#define AUTOLOCO_WORKER_CORE_EFFECTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "common/base/ids.h"
#include "worker/core/types.h"

namespace autoloco::worker {

// ---------------------------------------------------------------------------------------------------- session
// Opens the stream and says Hello as `identity`. At most one session is open at a time. Welcomed or SessionEnded
// follows.
struct OpenSession {
  Ticket session = 0;
  Identity identity;
  std::optional<HeldDelta> held;  // named in Hello: a delta of an earlier incarnation that could still count
};
// Cancels the stream; SessionEnded follows.
struct CloseSession {
  Ticket session = 0;
};
struct SendReady {
  Ticket session = 0;
  Identity identity;
  Version version = 0;
};
// The shell adds steps, loss and speed.
struct SendProgress {
  Ticket session = 0;
  Identity identity;
  WorkerPhase phase = WorkerPhase::kJoining;
  Round round = 0;
  std::optional<EvaluationPart> evaluation;
};
// Says Goodbye and closes this side of the stream; SessionEnded follows when the server has heard it.
struct SendGoodbye {
  Ticket session = 0;
  Identity identity;
  std::string reason;
};

// ---------------------------------------------------------------------------------------------------- work
// Build the model and open the data as the first Welcome says, with the optimizer's state that was saved in this run,
// if there is one. Once. Prepared follows.
struct Prepare {
  std::string run_id;
};
// Pull into the base buffer what the server sends to one who holds what is there: the next step on the way to the
// current version. Never while evaluation or training runs, unless it is a probe. PullEnded follows.
struct StartPull {
  Ticket ticket = 0;
  Identity identity;
  bool probe = false;  // only find out whether the server's parameters are those held: write nothing
};
struct CancelPull {
  Ticket ticket = 0;
};
// Evaluate the assignment's part of the held-out windows on the base. EvaluationEnded follows.
struct StartEvaluation {
  Assignment assignment;
};
// Train the interval from the base. TrainingEnded follows.
struct StartTraining {
  Assignment assignment;
};
// EvaluationEnded or TrainingEnded follows, CANCELLED unless it was just done.
struct CancelWork {};
// End the training before its next step as if it had been assigned the steps done so far; as CancelWork when those are
// fewer than `steps_min`. TrainingEnded follows.
struct EndTrainingEarly {
  std::uint32_t steps_min = 0;
};

// Form the delta of the interval that was trained last, encode it, and save it with the worker's own state where it has a folder
// for that. DeltaEncoded follows.
struct StartEncoding {
  Assignment assignment;
  Identity identity;  // whose delta it will be
  // What became of the delta encoded before this one. It counts: what its coding lost is carried on. It does not: what
  // had been carried before it still is.
  bool previous_counts = false;
};

// ---------------------------------------------------------------------------------------------------- push
// Send the encoded delta of `round`; the shell keeps the bytes until DropDelta or the next delta. PushEnded follows.
struct StartPush {
  Ticket ticket = 0;
  Identity identity;  // of the delta's key
  Round round = 0;
  bool leaving = false;  // the last one of this worker; it may have done fewer steps than it was assigned
};
// PushStatusEnded follows.
struct AskPushStatus {
  Ticket ticket = 0;
  Identity identity;  // of the delta's key
  Round round = 0;
};
// Gives up the push or question under way; its end is not awaited.
struct CancelPush {
  Ticket ticket = 0;
};
struct DropDelta {
  Round round = 0;
};

// ---------------------------------------------------------------------------------------------------- what one sees
enum class NoteKind {
  kJoined,        // first Welcome of an incarnation
  kReconnected,   // the same incarnation again
  kDisconnected,  // with the pause until the next attempt
  kAssigned,
  kPulled,
  kPullFailed,
  kEvaluated,
  kDropped,  // an interval that will not count
  kPushAnswered,
  kPushFailed,
  kRejoining,  // the lease ran out
  kLeaving,
};
const char* NoteKindName(NoteKind kind);

// One line of the log; `problem` asks for a warning.
struct Note {
  NoteKind kind = NoteKind::kJoined;
  Round round = 0;
  std::string text;
  bool problem = false;
};
// Last effect: the process ends with this code.
struct Finish {
  int exit_code = 0;
  std::string reason;
};

using Effect = std::variant<OpenSession, CloseSession, SendReady, SendProgress, SendGoodbye, Prepare, StartPull,
                            CancelPull, StartEvaluation, StartTraining, CancelWork, EndTrainingEarly, StartEncoding,
                            StartPush, AskPushStatus, CancelPush, DropDelta, Note, Finish>;

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CORE_EFFECTS_H_
