// From the deliveries of a round to its outer step, and from what the commit saw to the round's record: the place where
// combination, correction and statistics meet.
#ifndef AUTOLOCO_SERVER_CORE_ROUND_CONTROL_H_
#define AUTOLOCO_SERVER_CORE_ROUND_CONTROL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "server/core/combination.h"
#include "server/core/effects.h"
#include "server/core/interval_policy.h"
#include "server/core/open_round.h"
#include "server/core/outer_schedule.h"
#include "server/core/round_record.h"

namespace autoloco::server {

// What is known of a round when it opens.
RoundRecord OpenRecord(Round round, std::uint64_t first_inner_step, const IntervalDecision& decision);

struct CommitPlan {
  struct LeftOutDelta {
    std::string worker;
    PushKey push;
    const char* why = "";
  };
  StartCommit commit;
  std::vector<LeftOutDelta> left_out;  // delivered, and yet not part of the sum
};

struct CommitOptions {
  bool last = false;                // the run ends with this round
  std::uint32_t staleness_max = 0;  // of deltas that are counted (combination.h)
  double staleness_discount = 1;
};
// Weighs the deliveries, in name order, and makes the outer step; fills the shares of `round`'s entries and the work's
// part of its record. REQUIRES: something was delivered.
CommitPlan PlanCommit(const OuterSettings& settings, const CommitOptions& options, OpenRound* round);

// Fills what the commit saw into round->record.
void FinishRecord(const CommitStats& stats, absl::Duration duration, OpenRound* round);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_ROUND_CONTROL_H_
