// The round that is open: who was assigned what, and who has delivered.
#ifndef AUTOLOCO_SERVER_CORE_OPEN_ROUND_H_
#define AUTOLOCO_SERVER_CORE_OPEN_ROUND_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/core/round_record.h"
#include "server/core/types.h"

namespace autoloco::server {

struct RoundEntry {
  Incarnation incarnation = 0;  // the life that may deliver
  Assignment assignment;
  bool delivered = false;
  bool rejected = false;  // its delta arrived and will not count
  Ticket payload = 0;     // where delivered
  IntervalReport report;  // where delivered
  // Once the round has closed, where it is part of the sum (combination.h).
  double share = 0;
  double weight = 0;
};

struct OpenRound {
  Round number = 0;
  std::uint32_t inner_steps = 0;
  absl::Time opened_at;
  absl::Time first_delivery_at;  // meaningful once delivered > 0
  absl::Time last_delivery_at;
  std::map<std::string, RoundEntry> entries;  // by worker name
  RoundRecord record;

  std::uint32_t DeliveredCount() const {
    std::uint32_t count = 0;
    for (const auto& [name, entry] : entries) count += entry.delivered ? 1 : 0;
    return count;
  }
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_OPEN_ROUND_H_
