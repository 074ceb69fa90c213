// The pulls under way, and the snapshot of the current version that they are served from.
#ifndef AUTOLOCO_SERVER_RUNTIME_PULL_TABLE_H_
#define AUTOLOCO_SERVER_RUNTIME_PULL_TABLE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "server/core/events.h"
#include "server/runtime/calls.h"
#include "server/runtime/encoded_snapshot.h"
#include "server/runtime/inputs.h"
#include "server/runtime/ports.h"
#include "server/runtime/transfer_watch.h"

namespace autoloco::server {

// Loop thread only.
class PullTable {
 public:
  // Borrows telemetry and events for its life.
  PullTable(absl::Duration stall_timeout, Telemetry* telemetry, std::deque<Event>* events)
      : stall_timeout_(stall_timeout), telemetry_(telemetry), events_(events) {}

  // Pulls served from now on get this one; those under way keep theirs.
  void SetSnapshot(std::shared_ptr<const EncodedSnapshot> snapshot) { snapshot_ = std::move(snapshot); }
  const EncodedSnapshot& snapshot() const { return *snapshot_; }

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
    std::shared_ptr<const EncodedSnapshot> snapshot;  // null: parked
    std::shared_ptr<std::atomic<std::uint64_t>> moved;
    TransferWatch watch;
    bool cut = false;
  };

  const absl::Duration stall_timeout_;
  Telemetry* const telemetry_;
  std::deque<Event>* const events_;
  std::shared_ptr<const EncodedSnapshot> snapshot_;
  std::map<Ticket, Pull> pulls_;
  std::uint64_t bytes_of_ended_ = 0;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_PULL_TABLE_H_
