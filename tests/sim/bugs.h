// Bugs that the simulation plants in its own shells to prove that its checkers find them: the cores know nothing of it.
#ifndef AUTOLOCO_TESTS_SIM_BUGS_H_
#define AUTOLOCO_TESTS_SIM_BUGS_H_

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

namespace autoloco::sim {

enum class Bug {
  kNone,
  kDoubleApply,        // a delta that is sent again after a lost acknowledgement is summed twice
  kAckBeforeSync,      // the server acknowledges what is not on disk yet
  kFencingOff,         // a push of an older incarnation is taken for one of the newest
  kResidualLost,       // sending a delta again forgets what its coding lost
  kResidualMoves,      // what a delta's coding lost is carried on although it does not count
  kLedgerOffByOne,     // a token too many is booked
  kReplayReordered,    // recovery sums the deltas in another order
  kStaleBase,          // a worker says it pulled, and trains from what it had
  kBroadcastTwice,     // a worker adds broadcasts to blocks that have them already, and looks at no digest
  kDecisionForgotten,  // the record of a decision is not written
  kSpoolLeftUnsynced,  // records are durable before their payloads
};

// E.g. "double_apply"; the name given to --plant-bug.
const char* BugName(Bug bug);
std::optional<Bug> BugFromName(absl::string_view name);
// All but kNone.
std::vector<Bug> AllBugs();

}  // namespace autoloco::sim

#endif  // AUTOLOCO_TESTS_SIM_BUGS_H_
