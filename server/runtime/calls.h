// A parked call as the runtime sees it: how to answer it, without a word of gRPC. The reactors of server/rpc implement
// these; tests implement them by hand.
//
// Every method runs on the event-loop thread. A call stays valid until End() (or Answer(), which ends it as well) and
// not one instant longer.
#ifndef AUTOLOCO_SERVER_RUNTIME_CALLS_H_
#define AUTOLOCO_SERVER_RUNTIME_CALLS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/byte_ranges.h"
#include "server/core/effects.h"
#include "server/core/types.h"
#include "server/runtime/payload.h"
#include "server/runtime/pull_answer.h"

namespace autoloco::server {

// What the server says on a session.
using SessionMessage = std::variant<SendWelcome, SendAssignment, SendRoundClosed, SendAbort, SendDrain>;

class Call {
 public:
  virtual ~Call() = default;
  // Ends the call with `status`. Last method called.
  virtual void End(const absl::Status& status) = 0;
};

class SessionCall : public Call {
 public:
  // Reads one message: SessionRead, SessionMalformed or SessionEnded is posted. REQUIRES: no read under way.
  virtual void ReadNext() = 0;
  // Writes one message: SessionWritten is posted. REQUIRES: no write under way.
  virtual void Send(const SessionMessage& message) = 0;
  // Breaks the stream, so that a read or write under way ends; End() still has to follow.
  virtual void Cut() = 0;
};

class PushCall : public Call {
 public:
  // Reads the first message: PushHeaderRead or PushMalformed is posted.
  virtual void ReadHeader() = 0;
  // Reads chunks into `part` until it is whole, wrong or over: PushPayloadEnded is posted once.
  virtual void ReceivePayload(std::shared_ptr<PayloadPart> part) = 0;
  // Ends the call with OK and this reply.
  virtual void Answer(PushOutcome outcome, const std::string& reason, bool replayed) = 0;
};

class PullCall : public Call {
 public:
  // Sends the answer, adding to `bytes_moved` as its blocks go: PullEnded is posted once. End() must wait for it.
  virtual void Send(PullAnswer answer, std::shared_ptr<std::atomic<std::uint64_t>> bytes_moved) = 0;
  // Breaks the stream, so that PullEnded comes soon.
  virtual void Cut() = 0;
};

class PushStatusCall : public Call {
 public:
  // Ends the call. `missing`: of a push that is not known but under way; PushTable::Missing.
  virtual void Answer(const AnswerPushStatus& answer, const std::vector<ByteRange>& missing) = 0;
};

// The run, and what the process knows beyond the core.
struct ServerStatus {
  RunStatus run;
  absl::Time now;  // of the clock that run.workers[].last_seen is told in
  std::string params_digest;
  std::string view_digest;
  std::string checkpoint;  // path of the newest one; empty: none
  std::uint64_t parameters = 0;
  std::uint64_t bytes_up = 0;    // payload bytes received
  std::uint64_t bytes_down = 0;  // payload bytes sent
  absl::Duration uptime;
};

// Answers with a part of the history of rounds.
class RoundsCall : public Call {
 public:
  // Ends the call. `history` is borrowed for the call.
  virtual void Answer(const std::vector<RoundRecord>& history) = 0;
};

class StatusCall : public Call {
 public:
  // Ends the call.
  virtual void Answer(const ServerStatus& status) = 0;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_CALLS_H_
