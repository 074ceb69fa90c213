// The payloads that the server holds: by ticket while they come in, by push key once they are accepted, until the core
// drops them or a commit has used them. What came of a push whose streams broke is set aside for a while, so that the
// next attempt brings the rest only.
// Where their bytes lie, the record store decides.
#ifndef AUTOLOCO_SERVER_RUNTIME_PAYLOAD_STORE_H_
#define AUTOLOCO_SERVER_RUNTIME_PAYLOAD_STORE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "server/core/types.h"
#include "server/runtime/payload.h"
#include "server/runtime/ports.h"

namespace autoloco::server {

// A payload as a push announces it: bytes of two pushes that announce the same are the same.
struct AnnouncedPayload {
  PushKey key;
  std::string digest;
  std::uint64_t bytes = 0;

  bool operator==(const AnnouncedPayload&) const = default;
};

// Loop thread only.
class PayloadStore {
 public:
  // `in_flight_bytes_max`: announced bytes of the pushes that have been admitted, and neither dropped nor accepted, and
  // of what is set aside. `records`: gives the memory; borrowed.
  PayloadStore(std::uint64_t in_flight_bytes_max, RecordStore* records)
      : in_flight_bytes_max_(in_flight_bytes_max), records_(records) {}

  // Whether there is room for it now: in what was set aside for it, or beside what is in flight.
  bool HasRoom(const AnnouncedPayload& announced) const;
  // Room for a push: with the bytes that were set aside of it, or empty. What was set aside of others gives way, the
  // oldest first. RESOURCE_EXHAUSTED when it does not fit now; errors as RecordStore::Reserve. REQUIRES: the ticket
  // holds none.
  absl::StatusOr<std::shared_ptr<Payload>> Admit(Ticket ticket, const AnnouncedPayload& announced);
  // Unknown tickets and keys are ignored, here and below.
  void Drop(Ticket ticket);
  // Null: none.
  std::shared_ptr<Payload> Find(Ticket ticket) const;

  // Nobody brings more bytes for the ticket now: what is there of them is kept under its key. Dropped if there is
  // nothing.
  void SetAside(Ticket ticket, Instant now);
  // Null: none.
  const Payload* FindAside(const PushKey& key) const;
  // Drops what was set aside at `time` or before.
  void DropAsideUntil(Instant time);

  // The push was accepted: from now on its payload is known by its key, and no longer in flight.
  void Keep(Ticket ticket, const PushKey& key);
  // Holds a payload that was accepted by a former process.
  void Put(const PushKey& key, std::shared_ptr<Payload> payload) { kept_[key] = std::move(payload); }
  void Drop(const PushKey& key) { kept_.erase(key); }
  void DropBefore(Round round) { kept_.erase(kept_.begin(), kept_.lower_bound({{"", 0}, round, 0})); }
  std::shared_ptr<Payload> Find(const PushKey& key) const;

  // Without what is set aside.
  std::uint64_t in_flight_bytes() const { return in_flight_bytes_; }
  std::size_t size() const { return held_.size() + aside_.size() + kept_.size(); }

 private:
  struct Held {
    AnnouncedPayload announced;
    std::shared_ptr<Payload> payload;
    Instant since;  // when it was set aside
  };
  using Aside = std::map<PushKey, Held, PushKeyOrder>;

  bool IsAside(const AnnouncedPayload& announced) const;
  void DropAside(Aside::iterator it);
  // Drops what was set aside, the oldest first, until `bytes` fit beside the rest.
  void MakeRoom(std::uint64_t bytes);

  const std::uint64_t in_flight_bytes_max_;
  RecordStore* const records_;
  std::uint64_t in_flight_bytes_ = 0;
  std::uint64_t aside_bytes_ = 0;
  std::map<Ticket, Held> held_;
  Aside aside_;
  std::map<PushKey, std::shared_ptr<Payload>, PushKeyOrder> kept_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_PAYLOAD_STORE_H_
