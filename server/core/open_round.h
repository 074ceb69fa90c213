// The round that is open: who was assigned what, and who has delivered.
#ifndef AUTOLOCO_SERVER_CORE_OPEN_ROUND_H_
#define AUTOLOCO_SERVER_CORE_OPEN_ROUND_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/core/round_record.h"
#include "server/core/start_commit.h"
#include "server/core/types.h"

namespace autoloco::server {

struct RoundEntry {
  Incarnation incarnation = 0;  // the life that may deliver
  Assignment assignment;  // its round is an earlier one where the work goes on past its own round (late deltas)
  bool delivered = false;
  bool rejected = false;  // its delta arrived and will not count
  // Where delivered.
  Incarnation delivered_by = 0;
  std::string payload_digest;
  std::uint64_t payload_bytes = 0;
  IntervalReport report;
  double clip = 1;  // below 1: what the delta is scaled by (norm_admission.h)
  std::optional<EvaluationPart> evaluation;  // its part of the held-out loss, once it came
  // Once the round has closed, where it is part of the sum (combination.h).
  double share = 0;
  double weight = 0;
  bool operator==(const RoundEntry&) const = default;
};

// What of the round survives a restart.
struct RoundState {
  Round number = 0;
  std::uint64_t attempt = 0;  // the run's aborted rounds when it opened: tells the attempts of one round apart
  std::uint32_t inner_steps = 0;
  bool finishing = false;  // nothing is trained any more: the last version is being evaluated
  RoundRecord record;
  DataCursors cursors_before;                 // what an aborted round goes back to
  std::map<std::string, RoundEntry> entries;  // by worker name
  std::optional<StartCommit> decision;        // once it has closed
  bool operator==(const RoundState&) const = default;

  // The push that `entry` of `worker` has delivered.
  PushKey KeyOf(const std::string& worker, const RoundEntry& entry) const {
    return {{worker, entry.delivered_by}, entry.assignment.round, 0};
  }
  // Whether the entry's work began in an earlier round: it may still count, and nobody waits for it.
  bool IsLate(const RoundEntry& entry) const { return entry.assignment.round < number; }
  std::uint32_t DeliveredCount() const {
    std::uint32_t count = 0;
    for (const auto& [name, entry] : entries) count += entry.delivered ? 1 : 0;
    return count;
  }
};

struct OpenRound : RoundState {
  // When things happened to one worker's part.
  struct Times {
    absl::Time assigned_at;
    absl::Time delivered_at;  // meaningful where it has delivered
    absl::Time reported_at;   // meaningful where steps_done > 0
    std::uint32_t steps_done = 0;
  };

  absl::Time opened_at;          // where restored: of the restart
  absl::Time first_delivery_at;  // meaningful once delivered > 0; where restored: of the restart at the earliest
  absl::Time last_delivery_at;
  bool restored = false;  // a restart came between: its times say nothing of the workers
  std::map<std::string, Times> times;  // by worker name; only of what was assigned since the restart
  bool deadline_told = false;

  // Those of the opening where nothing is known.
  Times TimesOf(const std::string& worker) const {
    const auto it = times.find(worker);
    return it == times.end() ? Times{opened_at, opened_at, opened_at} : it->second;
  }
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_OPEN_ROUND_H_
