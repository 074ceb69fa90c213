// The open sessions: what still has to be written on each, and how each ends.
//
// A session reads one message at a time: the next one only after the core has seen the last. It writes one message at a
// time out of a bounded queue; closing waits until the queue has left.
#ifndef AUTOLOCO_SERVER_RUNTIME_SESSION_TABLE_H_
#define AUTOLOCO_SERVER_RUNTIME_SESSION_TABLE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "server/core/events.h"
#include "server/runtime/calls.h"
#include "server/runtime/inputs.h"

namespace autoloco::server {

// Loop thread only.
class SessionTable {
 public:
  static constexpr std::size_t kQueueMax = 64;                       // messages that wait on one session
  static constexpr absl::Duration kFlushTimeout = absl::Seconds(5);  // of a session that is being closed

  // Events for the core are appended to `events`, which must outlive the table.
  SessionTable(absl::Duration hello_timeout, std::deque<Event>* events)
      : hello_timeout_(hello_timeout), events_(events) {}

  // Inputs. Those with an unknown ticket return false.
  void Open(const SessionOpened& input, Instant now);
  bool OnRead(const SessionRead& input, Instant now);
  bool OnMalformed(const SessionMalformed& input, Instant now);
  bool OnEnded(const SessionEnded& input);
  bool OnWritten(const SessionWritten& input);

  // Effects. An unknown ticket is ignored.
  void Send(Ticket session, const SessionMessage& message, Instant now);
  // Ends the session with `status` once what was sent before has left; SessionClosed follows.
  void Close(Ticket session, const absl::Status& status, Instant now);

  void CloseAll(const absl::Status& status, Instant now);
  // Closes sessions without Hello and cuts those whose last messages do not leave.
  void Tick(Instant now);

  std::size_t size() const { return sessions_.size(); }

 private:
  struct Session {
    SessionCall* call = nullptr;
    Instant opened;
    bool hello = false;        // the core knows it
    bool core_closed = false;  // SessionClosed was emitted
    bool writing = false;
    std::deque<SessionMessage> queue;
    std::optional<absl::Status> closing;
    Instant closing_since;
    bool cut = false;
  };
  using Iterator = std::map<Ticket, Session>::iterator;

  void TellClosed(Iterator it);
  void StartClosing(Iterator it, const absl::Status& status, Instant now);
  void Cut(Iterator it);
  // Writes the next message, or ends the call when it is closing and has nothing left to write (`it` is gone then).
  void Advance(Iterator it);

  const absl::Duration hello_timeout_;
  std::deque<Event>* const events_;
  std::map<Ticket, Session> sessions_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_SESSION_TABLE_H_
