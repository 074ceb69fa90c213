// What became of every token that was leased to a worker.
//
// One lease for each assignment: outstanding until its delta is applied, comes late or is rejected, or nothing of it
// can come any more. What a delta was not trained on is unused. At any time
//
//   leased = applied + late + rejected + lost + unused + outstanding
#ifndef AUTOLOCO_SERVER_CORE_TOKEN_LEDGER_H_
#define AUTOLOCO_SERVER_CORE_TOKEN_LEDGER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "server/core/lease.h"
#include "server/core/records.h"

namespace autoloco::server {

using OutstandingLeases = std::map<LeaseKey, Lease>;

// Tokens of `leases`.
std::uint64_t OutstandingTokens(const OutstandingLeases& leases);
// Whether the equation above holds.
bool Balances(const LedgerTotals& totals, std::uint64_t outstanding);

// Not thread-safe; the core's own. Leases that are not outstanding are ignored: the first fate stands.
class TokenLedger {
 public:
  TokenLedger() = default;
  TokenLedger(OutstandingLeases outstanding, const LedgerTotals& totals)
      : outstanding_(std::move(outstanding)), totals_(totals) {}

  // REQUIRES: `key` is new; no other lease of this worker for the round is outstanding.
  void Open(const LeaseKey& key, std::uint64_t tokens);
  // Ends the worker's lease of the round with a delta that was trained on `trained` tokens; more than were leased count
  // as these. REQUIRES: kApplied, kLate or kRejected.
  void End(Round round, const WorkerId& worker, LeaseFate fate, std::uint64_t trained);
  // Nothing of these leases can come any more: the worker's of the round; all of the round; all of the worker's rounds
  // before `round`, whatever its life; all rounds before `round`.
  void Lose(Round round, const WorkerId& worker);
  void LoseRound(Round round);
  void LoseBefore(Round round, const std::string& worker);
  void LoseBefore(Round round);

  // What has changed since the last call.
  std::vector<Record> TakeRecords();

  const OutstandingLeases& outstanding() const { return outstanding_; }
  const LedgerTotals& totals() const { return totals_; }

 private:
  OutstandingLeases::iterator Find(Round round, const WorkerId& worker);
  OutstandingLeases::iterator Close(OutstandingLeases::iterator it, LeaseFate fate, std::uint64_t trained);
  template <typename Predicate>
  void LoseWhere(Predicate predicate);

  OutstandingLeases outstanding_;
  LedgerTotals totals_;
  std::vector<Record> changes_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_TOKEN_LEDGER_H_
