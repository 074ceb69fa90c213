// Every call that waits for an answer, by ticket; nothing else ends a call. An input for a ticket that is gone (a late
// cancel, a read that ends after the answer) is normal: it is counted and ignored.
#ifndef AUTOLOCO_SERVER_RUNTIME_CALL_TABLE_H_
#define AUTOLOCO_SERVER_RUNTIME_CALL_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "absl/status/status.h"
#include "server/runtime/inputs.h"
#include "server/runtime/pull_table.h"
#include "server/runtime/push_table.h"
#include "server/runtime/session_table.h"

namespace autoloco::server {

// Loop thread only.
class CallTable {
 public:
  struct Limits {
    std::size_t calls_max = 4096;  // open at a time, sessions and transfers together
    absl::Duration hello_timeout = absl::Seconds(10);
    absl::Duration stall_timeout = absl::Seconds(60);
    std::size_t chunk_bytes_max = 1024 * 1024;  // of one message of a push
  };
  CallTable(const Limits& limits, const PushTable::Tools& tools, const PullTable::Source& source)
      : calls_max_(limits.calls_max),
        events_(tools.events),
        sessions_(limits.hello_timeout, tools.events),
        pushes_(tools, limits.chunk_bytes_max, limits.stall_timeout),
        pulls_(source, limits.stall_timeout, tools.telemetry, tools.events) {}

  // Inputs that belong to a call.
  void On(const CallRejected& input) { input.call->End(input.status); }
  void On(const SessionOpened& input, Instant now);
  void On(const SessionRead& input, Instant now) { Count(sessions_.OnRead(input, now)); }
  void On(const SessionMalformed& input, Instant now) { Count(sessions_.OnMalformed(input, now)); }
  void On(const SessionEnded& input) { Count(sessions_.OnEnded(input)); }
  void On(const SessionWritten& input) { Count(sessions_.OnWritten(input)); }
  void On(const PushStarted& input, Instant now);
  void On(const PushHeaderRead& input, Instant now) { Count(pushes_.OnHeader(input, now)); }
  void On(const PushMalformed& input) { Count(pushes_.OnMalformed(input)); }
  void On(const PushPayloadEnded& input, Instant now) { Count(pushes_.OnPayloadEnded(input, now)); }
  void On(const PushAbandoned& input, Instant now) { Count(pushes_.OnAbandoned(input, now)); }
  void On(const PushChecked& input) { Count(pushes_.OnChecked(input)); }
  void On(const PullParked& input, Instant now);
  void On(const PullEnded& input, Instant now) { Count(pulls_.OnEnded(input, now)); }
  void On(const PushStatusParked& input);
  void On(const EvictParked& input);

  // Effects.
  SessionTable& sessions() { return sessions_; }
  PushTable& pushes() { return pushes_; }
  PullTable& pulls() { return pulls_; }
  const PushTable& pushes() const { return pushes_; }
  const PullTable& pulls() const { return pulls_; }
  void Answer(const AnswerPushStatus& effect);
  void Answer(const AnswerEvict& effect);

  // Ends every call that waits, and every later one, with UNAVAILABLE; pulls being served go on to their end.
  void Close(Instant now);
  void Tick(Instant now);

  // Calls and sessions that are still open.
  std::size_t size() const {
    return sessions_.size() + pushes_.size() + pulls_.size() + push_statuses_.size() + evictions_.size();
  }
  std::uint64_t ignored_inputs() const { return ignored_inputs_; }

 private:
  void Count(bool known) { ignored_inputs_ += known ? 0 : 1; }
  // OK, or why a new call is turned away.
  absl::Status CheckRoom() const;

  const std::size_t calls_max_;
  std::deque<Event>* const events_;
  bool closed_ = false;
  std::uint64_t ignored_inputs_ = 0;
  SessionTable sessions_;
  PushTable pushes_;
  PullTable pulls_;
  struct PushStatusAsker {
    PushStatusCall* call = nullptr;
    PushKey key;  // asked about
  };
  std::map<Ticket, PushStatusAsker> push_statuses_;
  std::map<Ticket, Call*> evictions_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_CALL_TABLE_H_
