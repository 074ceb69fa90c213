#include "tests/sim/bugs.h"

namespace autoloco::sim {

const char* BugName(Bug bug) {
  switch (bug) {
    case Bug::kNone: return "none";
    case Bug::kDoubleApply: return "double_apply";
    case Bug::kAckBeforeSync: return "ack_before_sync";
    case Bug::kFencingOff: return "fencing_off";
    case Bug::kResidualLost: return "residual_lost";
    case Bug::kResidualMoves: return "residual_moves";
    case Bug::kLedgerOffByOne: return "ledger_off_by_one";
    case Bug::kReplayReordered: return "replay_reordered";
    case Bug::kStaleBase: return "stale_base";
    case Bug::kBroadcastTwice: return "broadcast_twice";
    case Bug::kDecisionForgotten: return "decision_forgotten";
    case Bug::kSpoolLeftUnsynced: return "spool_left_unsynced";
  }
  return "?";
}

std::vector<Bug> AllBugs() {
  return {Bug::kDoubleApply,    Bug::kAckBeforeSync,     Bug::kFencingOff,       Bug::kResidualLost,
          Bug::kResidualMoves,  Bug::kLedgerOffByOne,    Bug::kReplayReordered,  Bug::kStaleBase,
          Bug::kBroadcastTwice, Bug::kDecisionForgotten, Bug::kSpoolLeftUnsynced};
}

std::optional<Bug> BugFromName(absl::string_view name) {
  for (const Bug bug : AllBugs()) {
    if (name == BugName(bug)) return bug;
  }
  return std::nullopt;
}

}  // namespace autoloco::sim
