// All that the core must remember across a restart, and the fold that makes it out of the records.
//
// The machine emits records of every change (StoreRecords), storage keeps them, and the state that a restarted server
// goes on from is the fold of those that were durable: whatever prefix that is, it is a state the machine has been in.
#ifndef AUTOLOCO_SERVER_CORE_CORE_STATE_H_
#define AUTOLOCO_SERVER_CORE_CORE_STATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/base/ids.h"
#include "server/core/lease.h"
#include "server/core/open_round.h"
#include "server/core/push_register.h"
#include "server/core/records.h"
#include "server/core/types.h"

namespace autoloco::server {

// A default one is that of a new run.
struct CoreState {
  CoreSnapshot run;                   // while a round is open: with the sample leases of that round given out
  std::string view_digest;            // of version run.version; empty: not known
  bool evaluated = false;             // the last version's loss is known: the run is over
  std::optional<Version> checkpoint;  // newest version that is stored, as far as the core knows
  std::set<std::string> participants;
  std::optional<DataIdentity> data;
  std::map<std::string, MemberState> members;  // by name
  std::optional<RoundState> round;             // open or decided
  PushRegister pushes;
  std::map<LeaseKey, Lease> leases;  // outstanding ones
  LedgerTotals ledger;
  bool operator==(const CoreState&) const = default;
};

// The state of a run that goes on from a checkpoint alone.
CoreState StateOf(const CoreSnapshot& snapshot);

// Brings `state` to what `record` says. Once or twice makes no difference.
// REQUIRES: records in the order in which they were emitted, from a state that the machine was in.
void Apply(const Record& record, CoreState* state);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_CORE_STATE_H_
