// Holds back what a worker can see, and what cannot be undone, until everything recorded before it is durable.
//
// The core goes on at once; only its visible effects wait for the disk. Since records become durable in order, what a
// crash loses is a suffix of steps of which nobody has seen anything.
#ifndef AUTOLOCO_SERVER_CORE_DURABLE_OUTBOX_H_
#define AUTOLOCO_SERVER_CORE_DURABLE_OUTBOX_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "server/core/effects.h"
#include "server/core/records.h"

namespace autoloco::server {

// Not thread-safe; the core's own.
class DurableOutbox {
 public:
  // One step's records and effects. Appends to `out` what may go out now: StoreRecords first, where there are records.
  void Add(std::vector<Record> records, std::vector<Effect> effects, std::vector<Effect>* out);
  // All records up to `sequence` are durable: appends to `out` what waited for them alone, in order.
  void Stored(std::uint64_t sequence, std::vector<Effect>* out);

  std::size_t held() const { return held_.size(); }

 private:
  struct Held {
    std::uint64_t sequence = 0;  // that must be durable first
    Effect effect;
  };

  std::uint64_t sequence_ = 0;  // of the newest records
  std::uint64_t stored_ = 0;    // durable up to here
  std::deque<Held> held_;       // by sequence
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_DURABLE_OUTBOX_H_
