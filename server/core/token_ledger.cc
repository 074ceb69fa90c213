#include "server/core/token_ledger.h"

#include <algorithm>
#include <utility>

namespace autoloco::server {

std::uint64_t OutstandingTokens(const OutstandingLeases& leases) {
  std::uint64_t tokens = 0;
  for (const auto& [key, lease] : leases) tokens += lease.leased;
  return tokens;
}

bool Balances(const LedgerTotals& totals, std::uint64_t outstanding) {
  return totals.leased ==
         totals.applied + totals.late + totals.rejected + totals.lost + totals.unused + outstanding;
}

void TokenLedger::Open(const LeaseKey& key, std::uint64_t tokens) {
  const Lease lease{tokens, 0, LeaseFate::kOutstanding};
  outstanding_[key] = lease;
  totals_.leased += tokens;
  changes_.push_back(LeaseRecord{key, lease});
}

void TokenLedger::End(Round round, const WorkerId& worker, LeaseFate fate, std::uint64_t trained) {
  const auto it = Find(round, worker);
  if (it != outstanding_.end()) Close(it, fate, trained);
}

void TokenLedger::Lose(Round round, const WorkerId& worker) {
  LoseWhere([&](const LeaseKey& key) { return key.round == round && key.worker == worker; });
}

void TokenLedger::LoseRound(Round round) {
  LoseWhere([round](const LeaseKey& key) { return key.round == round; });
}

void TokenLedger::LoseBefore(Round round, const std::string& worker) {
  LoseWhere([&](const LeaseKey& key) { return key.round < round && key.worker.name == worker; });
}

void TokenLedger::LoseBefore(Round round) {
  LoseWhere([round](const LeaseKey& key) { return key.round < round; });
}

OutstandingLeases::iterator TokenLedger::Find(Round round, const WorkerId& worker) {
  return std::find_if(outstanding_.begin(), outstanding_.end(), [&](const auto& entry) {
    return entry.first.round == round && entry.first.worker == worker;
  });
}

OutstandingLeases::iterator TokenLedger::Close(OutstandingLeases::iterator it, LeaseFate fate,
                                               std::uint64_t trained) {
  Lease lease = it->second;
  lease.fate = fate;
  if (fate == LeaseFate::kLost) {
    totals_.lost += lease.leased;
  } else {
    lease.trained = std::min(trained, lease.leased);
    totals_.unused += lease.leased - lease.trained;
    std::uint64_t& total = fate == LeaseFate::kApplied ? totals_.applied
                           : fate == LeaseFate::kLate  ? totals_.late
                                                       : totals_.rejected;
    total += lease.trained;
  }
  changes_.push_back(LeaseRecord{it->first, lease});
  return outstanding_.erase(it);
}

template <typename Predicate>
void TokenLedger::LoseWhere(Predicate predicate) {
  for (auto it = outstanding_.begin(); it != outstanding_.end();) {
    it = predicate(it->first) ? Close(it, LeaseFate::kLost, 0) : std::next(it);
  }
}

std::vector<Record> TokenLedger::TakeRecords() {
  if (!changes_.empty()) changes_.push_back(LedgerRecord{totals_});
  return std::exchange(changes_, {});
}

}  // namespace autoloco::server
