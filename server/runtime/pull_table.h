// The pulls under way, and what they are served from.
#ifndef AUTOLOCO_SERVER_RUNTIME_PULL_TABLE_H_
#define AUTOLOCO_SERVER_RUNTIME_PULL_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/tensor/layout.h"
#include "server/core/effects.h"
#include "server/core/events.h"
#include "server/runtime/broadcast_log.h"
#include "server/runtime/calls.h"
#include "server/runtime/inputs.h"
#include "server/runtime/live_reader.h"
#include "server/runtime/ports.h"
#include "server/runtime/transfer_watch.h"

namespace autoloco::server {

// Loop thread only.
class PullTable {
 public:
  struct Source {
    const Layout* layout = nullptr;              // borrowed
    std::shared_ptr<LiveReader> live = nullptr;  // null: versions are sent whole
    std::size_t payloads_kept = 1;
  };
  // Borrows telemetry and events for its life.
  PullTable(const Source& source, absl::Duration stall_timeout, Telemetry* telemetry, std::deque<Event>* events)
      : source_(source),
        stall_timeout_(stall_timeout),
        telemetry_(telemetry),
        events_(events),
        log_(source.payloads_kept) {}

  // Pulls served from now on may get this one; those under way keep theirs.
  void Add(std::shared_ptr<const EncodedPayload> payload) { log_.Add(std::move(payload)); }

  // Inputs. OnEnded returns false for an unknown ticket.
  void Park(const PullParked& input, Instant now);
  bool OnEnded(const PullEnded& input, Instant now);

  // Effects. An unknown ticket is ignored.
  void Serve(const ServePull& effect, Instant now);
  void Refuse(Ticket ticket, const absl::Status& status);

  // Refuses those that are not being served yet.
  void CloseParked(const absl::Status& status);
  void Tick(Instant now);

  std::size_t size() const { return pulls_.size(); }
  // Payload bytes of all pulls so far, whole or not.
  std::uint64_t bytes_sent() const;

 private:
  struct Pull {
    PullCall* call = nullptr;
    Sender sender;
    std::shared_ptr<std::atomic<std::uint64_t>> moved;  // null: parked
    std::uint64_t value_count = 0;                      // of the blocks that are sent
    TransferWatch watch;
    bool cut = false;
  };

  // What `effect` wants; INVALID_ARGUMENT: it has no such blocks; ABORTED: it is gone.
  absl::StatusOr<PullAnswer> AnswerTo(const ServePull& effect) const;

  const Source source_;
  const absl::Duration stall_timeout_;
  Telemetry* const telemetry_;
  std::deque<Event>* const events_;
  BroadcastLog log_;
  std::map<Ticket, Pull> pulls_;
  std::uint64_t bytes_of_ended_ = 0;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_PULL_TABLE_H_
