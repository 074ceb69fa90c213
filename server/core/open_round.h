// The round that is open: who was assigned what, and who has delivered.
#ifndef AUTOLOCO_SERVER_CORE_OPEN_ROUND_H_
#define AUTOLOCO_SERVER_CORE_OPEN_ROUND_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/core/effects.h"
#include "server/core/types.h"

namespace autoloco::server {

struct RoundEntry {
  Incarnation incarnation = 0;  // the life that may deliver
  Assignment assignment;
  bool delivered = false;
  bool rejected = false;  // its delta arrived and will not count
  Ticket payload = 0;     // where delivered
  IntervalReport report;  // where delivered
};

struct OpenRound {
  Round number = 0;
  std::uint32_t inner_steps = 0;
  absl::Time opened_at;
  absl::Time first_delivery_at;  // meaningful once delivered > 0
  absl::Time last_delivery_at;
  std::map<std::string, RoundEntry> entries;  // by worker name

  std::uint32_t DeliveredCount() const {
    std::uint32_t count = 0;
    for (const auto& [name, entry] : entries) count += entry.delivered ? 1 : 0;
    return count;
  }

  // The deltas in name order, each with the same weight: every contributor did the same work.
  std::vector<StartCommit::Contribution> Contributions() const {
    std::vector<StartCommit::Contribution> contributions;
    const double weight = 1.0 / DeliveredCount();
    for (const auto& [name, entry] : entries) {
      if (entry.delivered) contributions.push_back({entry.payload, name, weight});
    }
    return contributions;
  }
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_OPEN_ROUND_H_
