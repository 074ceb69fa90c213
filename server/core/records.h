// What the core has stored of its changes: absolute values of the parts of CoreState, so that a record may be stored
// twice. core_state.h folds them; server/storage keeps them in the state database.
//
// All records of one StoreRecords belong together: they are durable together or not at all.
#ifndef AUTOLOCO_SERVER_CORE_RECORDS_H_
#define AUTOLOCO_SERVER_CORE_RECORDS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "common/base/ids.h"
#include "server/core/lease.h"
#include "server/core/open_round.h"
#include "server/core/push_register.h"
#include "server/core/reasons.h"
#include "server/core/round_record.h"
#include "server/core/start_commit.h"
#include "server/core/types.h"

namespace autoloco::server {

// What tells datasets apart.
struct DataIdentity {
  std::uint64_t samples = 0;
  std::uint64_t hash = 0;
  bool operator==(const DataIdentity&) const = default;
};

// How far the run is.
struct RunRecord {
  RunProgress progress;
  std::set<std::string> participants;  // strict mode: the names of the first round; empty before it
  std::optional<DataIdentity> data;    // that shared data must have
  bool operator==(const RunRecord&) const = default;
};

// What is remembered of one worker: its newest life.
struct MemberState {
  Incarnation incarnation = 0;
  bool alive = true;   // false: left, expired or refused
  bool ready = false;  // has built its model and can be assigned
  Reason reason = Reason::kJoined;
  std::string text;
  std::uint64_t tokens = 0;  // of its applied deltas, in all its lives
  // Its speed as of its last delivery (worker_speed.h); 0: not known.
  double step_seconds = 0;
  double overhead_seconds = 0;
  bool operator==(const MemberState&) const = default;
};
struct MemberRecord {
  std::string name;
  MemberState member;
  bool operator==(const MemberRecord&) const = default;
};
struct MemberForgottenRecord {
  std::string name;
  bool operator==(const MemberForgottenRecord&) const = default;
};

// A round is open, with the entries it opened with.
struct RoundOpenedRecord {
  RoundState round;
  bool operator==(const RoundOpenedRecord&) const = default;
};
// One worker's part of the open round: new, or as it is now.
struct EntryRecord {
  Round round = 0;
  std::string worker;
  RoundEntry entry;
  bool operator==(const EntryRecord&) const = default;
};
// A push that arrived whole has this outcome, for ever.
struct PushRecord {
  PushKey key;
  RecordedPush push;
  // Where accepted: the payload to keep, and the ticket to take it from (of this process: stored nowhere).
  std::uint64_t payload_bytes = 0;
  Ticket payload = 0;
  bool operator==(const PushRecord&) const = default;
};
// The open round has closed; its shares and weights come with EntryRecords.
struct RoundDecidedRecord {
  StartCommit decision;
  RoundRecord record;
  bool operator==(const RoundDecidedRecord&) const = default;
};
// The decision was carried out: the open round is history.
struct RoundCommittedRecord {
  Round round = 0;
  CommitStats stats;
  RoundRecord record;
  bool operator==(const RoundCommittedRecord&) const = default;
};
// The open round will not be committed and opens again under its number.
struct RoundAbortedRecord {
  Round round = 0;
  std::uint64_t attempt = 0;
  std::string reason;
  bool operator==(const RoundAbortedRecord&) const = default;
};
// The last version has been evaluated, as far as it can be: the run is over.
struct RunEvaluatedRecord {
  Version version = 0;
  bool operator==(const RunEvaluatedRecord&) const = default;
};
// The held-out loss of a version; an earlier one of the same version gives way.
struct EvaluationRecord {
  EvaluationPoint point;
  bool operator==(const EvaluationRecord&) const = default;
};
struct CheckpointRecord {
  Version version = 0;
  bool operator==(const CheckpointRecord&) const = default;
};
struct LeaseRecord {
  LeaseKey key;
  Lease lease;
  bool operator==(const LeaseRecord&) const = default;
};
struct LedgerRecord {
  LedgerTotals totals;
  bool operator==(const LedgerRecord&) const = default;
};

using Record = std::variant<RunRecord, MemberRecord, MemberForgottenRecord, RoundOpenedRecord, EntryRecord, PushRecord,
                            RoundDecidedRecord, RoundCommittedRecord, RoundAbortedRecord, RunEvaluatedRecord,
                            EvaluationRecord, CheckpointRecord, LeaseRecord, LedgerRecord>;

// E.g. "round_opened".
const char* RecordName(const Record& record);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_RECORDS_H_
