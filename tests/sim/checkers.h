// What must hold at every instant, whatever goes wrong. The checkers see both sides at once: every delta that a worker
// really trained and sent, every record that is durable, and every effect that leaves the server.
//
// - A delta is applied at most once, under the key it was sent by, and one of a worker in a round at most.
// - What was acknowledged is part of its round's sum, unless the decision names it as left out.
// - Nothing is visible before it is durable: answers, assignments, versions, decisions.
// - Each version is what the reference kernel makes of the recorded decision and the deltas as they were sent.
// - Every interval starts from the server's view, and from the residual that its worker is left with.
// - Each ticket is answered at most once.
// - The token ledger balances, and counts what was really trained.
#ifndef AUTOLOCO_TESTS_SIM_CHECKERS_H_
#define AUTOLOCO_TESTS_SIM_CHECKERS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/core/core_state.h"
#include "server/core/effects.h"
#include "server/core/events.h"
#include "server/core/records.h"
#include "tests/sim/model.h"
#include "tests/sim/scenario.h"
#include "tests/sim/trace.h"

namespace autoloco::sim {

// One disk's worth of a worker: who starts again from the state of another has its lineage.
using Lineage = std::size_t;

class Checkers {
 public:
  Checkers(const Scenario& scenario, Trace* trace);

  // ------------------------------------------------------------------------------------------------ workers
  // A new worker without any state.
  Lineage NewLineage();
  // Its state is gone: it starts from nothing.
  void OnStateLost(Lineage lineage);
  // Its process began again, from what is on its disk: it may not know what the last one had learned.
  void OnRestarted(Lineage lineage);
  void OnTrained(const std::string& worker, Lineage lineage, const Delta& delta);
  // The delta leaves under `key`, perhaps again.
  void OnSent(const server::PushKey& key, Lineage lineage, const Delta& delta);
  // The worker has learned what became of its delta.
  void OnOutcome(const server::PushKey& key, bool accepted);

  // ------------------------------------------------------------------------------------------------ server
  // A new process: its tickets are new.
  void OnServerStarted();
  // A batch is durable; `state` is the fold of all durable records.
  void OnDurable(const std::vector<server::Record>& records, const server::CoreState& state);
  // An effect is about to be carried out, with `state` durable. Returns whether all is well.
  void OnEffect(const server::Effect& effect, const server::CoreState& state);
  // The header of the push that a ticket stands for.
  void OnPushOpened(const server::PushOpened& push);
  // The operator is told that the worker is shut out, or let in again.
  void OnEvictionAnswered(const std::string& worker, bool evicted, const absl::Status& status,
                          const server::CoreState& state);
  // Which worker a session is of.
  void OnHello(Ticket session, const std::string& worker) { sessions_[session] = worker; }

  void Violate(const char* checker, const std::string& text);
  bool ok() const { return violations_.empty(); }
  const std::vector<std::string>& violations() const { return violations_; }

  Version version() const { return versions_.size() - 1; }  // newest durable one
  struct Digests {
    std::string params;
    std::string view;
    bool operator==(const Digests&) const = default;
  };
  const Digests& DigestsOfVersion(Version version) const { return versions_[version]; }
  // How many rounds a worker's delta was part of, since OnFaultsStopped.
  void OnFaultsStopped() { contributed_.clear(); }
  std::uint64_t Contributions(const std::string& worker) const {
    const auto it = contributed_.find(worker);
    return it == contributed_.end() ? 0 : it->second;
  }

 private:
  struct Sent {
    Lineage lineage = 0;
    Delta delta;
    bool accepted = false;  // durably
    bool applied = false;
  };
  struct OwnRound {  // the open one, as the durable records have it
    std::map<std::string, server::PushKey> accepted;
    std::optional<server::StartCommit> decision;
  };

  void Durable(const server::PushRecord& record);
  void Durable(const server::RoundDecidedRecord& record);
  void Durable(const server::RoundCommittedRecord& record);
  void Durable(const server::RoundAbortedRecord& record);
  template <typename Other>
  void Durable(const Other&) {}
  bool MayCount(Round round, Round decided) const;
  void CheckLedger(const server::CoreState& state);

  void Leaving(const server::SendWelcome& effect, const server::CoreState& state);
  void Leaving(const server::SendAssignment& effect, const server::CoreState& state);
  void Leaving(const server::SendRoundClosed& effect, const server::CoreState& state);
  void Leaving(const server::AnswerPush& effect, const server::CoreState& state);
  void Leaving(const server::RefusePush& effect, const server::CoreState& state);
  void Leaving(const server::AnswerPushStatus& effect, const server::CoreState& state);
  void Leaving(const server::ServePull& effect, const server::CoreState& state);
  void Leaving(const server::RefusePull& effect, const server::CoreState& state);
  void Leaving(const server::AnswerEvict& effect, const server::CoreState& state);
  void Leaving(const server::StartCommit& effect, const server::CoreState& state);
  void Leaving(const server::StartCheckpoint& effect, const server::CoreState& state);
  void Leaving(const server::Decision& effect, const server::CoreState& state);
  template <typename Other>
  void Leaving(const Other&, const server::CoreState&) {}
  void Answered(Ticket ticket, const char* what);
  void CheckVersionDurable(const char* what, Version version, const server::CoreState& state);

  const Scenario& scenario_;
  Trace* const trace_;
  std::vector<std::string> violations_;

  std::map<server::PushKey, Sent, server::PushKeyOrder> sent_;
  struct Residuals {
    std::vector<Values> allowed;  // now
    Values before, after;         // of its last accepted delta
  };
  std::vector<Residuals> residuals_;  // by lineage
  std::vector<Digests> versions_;
  Parameters parameters_;  // of the newest durable version
  OwnRound round_;
  std::set<std::pair<Round, std::string>> left_out_;
  std::map<std::string, std::uint64_t> contributed_;
  std::uint64_t tokens_applied_ = 0;

  std::set<Ticket> answered_;  // of the server's process
  std::map<Ticket, server::PushOpened> pushes_;
  std::map<Ticket, std::string> sessions_;
  std::map<Incarnation, std::string> incarnations_;
};

}  // namespace autoloco::sim

#endif  // AUTOLOCO_TESTS_SIM_CHECKERS_H_
