// Everything that is posted to the event loop, one struct each: the list is the control flow of the shell. Calls in
// here are handed over: from then on the loop thread alone ends them.
#ifndef AUTOLOCO_SERVER_RUNTIME_INPUTS_H_
#define AUTOLOCO_SERVER_RUNTIME_INPUTS_H_

#include <memory>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/byte_ranges.h"
#include "common/base/ids.h"
#include "server/core/events.h"
#include "server/runtime/calls.h"
#include "server/runtime/encoded_payload.h"
#include "server/runtime/ports.h"

namespace autoloco::server {

// A call whose request does not hold water: it is ended with the status, the core never hears of it.
struct CallRejected {
  Call* call = nullptr;
  absl::Status status;
};

// ---------------------------------------------------------------------------------------------------- sessions
// A stream was opened; nothing has been read yet.
struct SessionOpened {
  Ticket ticket = 0;
  SessionCall* call = nullptr;
};
using SessionEvent = std::variant<HelloReceived, ReadyReceived, ProgressReceived, GoodbyeReceived>;
struct SessionRead {
  Ticket ticket = 0;
  SessionEvent event;
};
struct SessionMalformed {
  Ticket ticket = 0;
  absl::Status status;
};
// Nothing more will be read.
struct SessionEnded {
  Ticket ticket = 0;
};
struct SessionWritten {
  Ticket ticket = 0;
  bool ok = false;
};

// ---------------------------------------------------------------------------------------------------- transfers
// A stream was opened; nothing has been read yet.
struct PushStarted {
  Ticket ticket = 0;
  PushCall* call = nullptr;
};
struct PushHeaderRead {
  PushOpened event;
  ByteRange range;  // that this stream brings; inside the payload
};
// The first message is no header, or none that holds water.
struct PushMalformed {
  Ticket ticket = 0;
  absl::Status status;
};
// OK: exactly the bytes of the stream's range came and the sender is done. `cut_short`: the stream ended early, which
// may also mean that the caller is gone (PushAbandoned follows then).
struct PushPayloadEnded {
  Ticket ticket = 0;
  absl::Status status;
  bool cut_short = false;
};
// The caller is gone.
struct PushAbandoned {
  Ticket ticket = 0;
};
// Every block of a whole payload was looked at.
struct PushChecked {
  Ticket ticket = 0;
  absl::Status status;
  bool finite = true;
  std::string non_finite;
  double norm = 0;
};
struct PullParked {
  PullCall* call = nullptr;
  PullOpened event;
};
struct PullEnded {
  Ticket ticket = 0;
  bool ok = false;  // all bytes were sent
};

// ---------------------------------------------------------------------------------------------------- unary calls
struct PushStatusParked {
  PushStatusCall* call = nullptr;
  PushStatusAsked event;
};
struct StatusParked {
  StatusCall* call = nullptr;
};
struct RoundsParked {
  RoundsCall* call = nullptr;
};
// Answered by ending it with a status.
struct EvictParked {
  Call* call = nullptr;
  EvictAsked event;
};

// ---------------------------------------------------------------------------------------------------- slow work
struct CommitFinished {
  CommitDone event;
  std::shared_ptr<const EncodedPayload> payload;  // what is sent of the new version
};
struct CheckpointFinished {
  Version version = 0;
  absl::StatusOr<StoredCheckpoint> result;
};

// RecordsStored (server/core/events.h) is posted as it is.

// The task could not be done; it is tried again. OK: it could, after that.
struct StorageTrouble {
  StorageTask task = StorageTask::kRecords;
  absl::Status status;
};
// That has gone on for too long: the process must end.
struct StorageGaveUp {
  StorageTask task = StorageTask::kRecords;
  absl::Status status;
};

// ---------------------------------------------------------------------------------------------------- the process
// The operator asked for an orderly end.
struct ShutdownAsked {
  std::string reason;
};
// Ends every call that waits and every new one with UNAVAILABLE; transfers to workers go on.
struct CloseCalls {};
// The loop thread returns. Last input.
struct StopLoop {};

using Input =
    std::variant<CallRejected, SessionOpened, SessionRead, SessionMalformed, SessionEnded, SessionWritten, PushStarted,
                 PushHeaderRead, PushMalformed, PushPayloadEnded, PushAbandoned, PushChecked, PullParked, PullEnded,
                 PushStatusParked, StatusParked, RoundsParked, EvictParked, CommitFinished, CheckpointFinished,
                 RecordsStored, StorageTrouble, StorageGaveUp, ShutdownAsked, CloseCalls, StopLoop>;

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_INPUTS_H_
