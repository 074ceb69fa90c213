// The payloads that the server holds, by ticket: from admission until the core drops them or a commit has used them.
// In memory for now; a spool on disk takes its place behind the same calls.
#ifndef AUTOLOCO_SERVER_RUNTIME_PAYLOAD_STORE_H_
#define AUTOLOCO_SERVER_RUNTIME_PAYLOAD_STORE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "server/runtime/payload.h"

namespace autoloco::server {

// Loop thread only.
class PayloadStore {
 public:
  // `in_flight_bytes_max`: announced bytes of the pushes that have been admitted and not yet been settled.
  PayloadStore(std::uint64_t in_flight_bytes_max, std::size_t chunk_bytes_max)
      : in_flight_bytes_max_(in_flight_bytes_max), chunk_bytes_max_(chunk_bytes_max) {}

  // Room for a push. RESOURCE_EXHAUSTED when it does not fit now. REQUIRES: the ticket holds none.
  absl::StatusOr<std::shared_ptr<Payload>> Admit(Ticket ticket, std::uint64_t size_bytes);
  // The push is no longer in flight; its payload stays. Unknown tickets are ignored, here and below.
  void Settle(Ticket ticket);
  void Drop(Ticket ticket);
  // Null: none.
  std::shared_ptr<Payload> Find(Ticket ticket) const;

  std::uint64_t in_flight_bytes() const { return in_flight_bytes_; }
  std::size_t size() const { return held_.size(); }

 private:
  struct Held {
    std::shared_ptr<Payload> payload;
    bool in_flight = true;
  };

  const std::uint64_t in_flight_bytes_max_;
  const std::size_t chunk_bytes_max_;
  std::uint64_t in_flight_bytes_ = 0;
  std::map<Ticket, Held> held_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_PAYLOAD_STORE_H_
