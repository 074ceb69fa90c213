// The payloads that the server holds: by ticket while they come in, by push key once they are accepted, until the core
// drops them or a commit has used them.
// Where their bytes lie, the record store decides.
#ifndef AUTOLOCO_SERVER_RUNTIME_PAYLOAD_STORE_H_
#define AUTOLOCO_SERVER_RUNTIME_PAYLOAD_STORE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "server/core/types.h"
#include "server/runtime/payload.h"
#include "server/runtime/ports.h"

namespace autoloco::server {

// Loop thread only.
class PayloadStore {
 public:
  // `in_flight_bytes_max`: announced bytes of the pushes that have been admitted, and neither dropped nor accepted.
  // `records`: gives the memory; borrowed.
  PayloadStore(std::uint64_t in_flight_bytes_max, std::size_t chunk_bytes_max, RecordStore* records)
      : in_flight_bytes_max_(in_flight_bytes_max), chunk_bytes_max_(chunk_bytes_max), records_(records) {}

  // Room for a push. RESOURCE_EXHAUSTED when it does not fit now; errors as RecordStore::Reserve. REQUIRES: the ticket holds none.
  absl::StatusOr<std::shared_ptr<Payload>> Admit(Ticket ticket, std::uint64_t size_bytes);
  // Unknown tickets and keys are ignored, here and below.
  void Drop(Ticket ticket);
  // Null: none.
  std::shared_ptr<Payload> Find(Ticket ticket) const;

  // The push was accepted: from now on its payload is known by its key, and no longer in flight.
  void Keep(Ticket ticket, const PushKey& key);
  // Holds a payload that was accepted by a former process.
  void Put(const PushKey& key, std::shared_ptr<Payload> payload) { kept_[key] = std::move(payload); }
  void Drop(const PushKey& key) { kept_.erase(key); }
  void DropBefore(Round round) { kept_.erase(kept_.begin(), kept_.lower_bound({{"", 0}, round, 0})); }
  std::shared_ptr<Payload> Find(const PushKey& key) const;

  std::uint64_t in_flight_bytes() const { return in_flight_bytes_; }
  std::size_t size() const { return held_.size() + kept_.size(); }

 private:
  const std::uint64_t in_flight_bytes_max_;
  const std::size_t chunk_bytes_max_;
  RecordStore* const records_;
  std::uint64_t in_flight_bytes_ = 0;
  std::map<Ticket, std::shared_ptr<Payload>> held_;
  std::map<PushKey, std::shared_ptr<Payload>, PushKeyOrder> kept_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_PAYLOAD_STORE_H_
