// Drives a RoundMachine by hand: says the events of well-behaved workers, sorts the effects, keeps virtual time. After
// every event it checks that what the machine says must survive a restart is what its records fold to.
#ifndef AUTOLOCO_TESTS_SUPPORT_CORE_SCRIPT_H_
#define AUTOLOCO_TESTS_SUPPORT_CORE_SCRIPT_H_

#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/tensor/layout.h"
#include "server/core/core_state.h"
#include "server/core/round_machine.h"

namespace autoloco::server {

// Two small tensors, eight values.
Layout SmallLayout();
// Run "run-1", fixed intervals of 5, 23 steps in all at a constant learning rate of 0.01, two workers to start, lease
// 15 s, grace 3 s, no deadline.
CoreConfig SmallConfig();

class CoreScript {
 public:
  explicit CoreScript(CoreConfig config = SmallConfig(), const CoreSnapshot& snapshot = {})
      : CoreScript(std::move(config), StateOf(snapshot)) {}
  CoreScript(CoreConfig config, const CoreState& state);
  // With the workers of a former life of the server, who know what they have learned from it; none has a session.
  CoreScript(CoreConfig config, const CoreState& state, const CoreScript& former)
      : CoreScript(std::move(config), state) {
    incarnations_ = former.incarnations_;
    assignments_ = former.assignments_;
  }

  void Advance(absl::Duration duration) { now_ += duration; }
  // Fires every deadline up to `duration` from now, then stands there.
  void RunTimers(absl::Duration duration);
  void Say(const Event& event);

  // Hello with incarnation 0; returns the session.
  Ticket Hello(const std::string& name);
  void Ready(const std::string& name);
  // Hello and Ready.
  Ticket Join(const std::string& name);
  Sender SenderOf(const std::string& name) const { return {config_.run_id, {name, incarnations_.at(name)}}; }
  // A whole delta of the worker's current assignment: header, payload, verdict. Returns the ticket.
  Ticket Push(const std::string& name, const std::string& digest = "d");
  Ticket OpenPush(const std::string& name, Round round, const std::string& digest, std::uint32_t inner_steps);
  void Evaluate(const std::string& name, double loss_sum, std::uint64_t tokens);
  // Answers StartCommit; the view of version v has the digest "view v".
  void Commit(const CommitStats& stats = {});
  // What the next pushes report beside steps and tokens.
  IntervalReport& report() { return report_; }
  // Records of later steps than the first `steps` that have some wait for Store(); else they are durable at once.
  void HoldRecordsAfter(std::size_t steps) { steps_stored_max_ = steps; }
  // All records so far are durable.
  void Store();
  // The records of every step so far that had some.
  const std::vector<std::vector<Record>>& records() const { return records_; }
  // What a machine restarts from that has lost all but the first `steps` of them.
  CoreState StateAfter(std::size_t steps) const;
  // Whether a server has welcomed the worker.
  bool Knows(const std::string& name) const { return incarnations_.contains(name); }
  // Null: it has had none.
  const Assignment* FindAssignment(const std::string& name) const {
    const auto it = assignments_.find(name);
    return it == assignments_.end() ? nullptr : &it->second;
  }
  // A commit or a checkpoint has been asked for and not been answered.
  bool CommitAsked() const { return committing_.has_value(); }
  bool CheckpointAsked() const { return !checkpoints_.empty(); }
  // Hello under the incarnation it has; returns the session.
  Ticket Reconnect(const std::string& name);
  // Answers every StartCheckpoint that is open.
  void Checkpoint(const absl::Status& status = absl::OkStatus());

  // Effects of one type since the last Clear, in order.
  template <typename T>
  std::vector<T> All() const {
    std::vector<T> found;
    for (const Effect& effect : effects_) {
      if (const T* one = std::get_if<T>(&effect)) found.push_back(*one);
    }
    return found;
  }
  template <typename T>
  std::optional<T> Last() const {
    const std::vector<T> all = All<T>();
    return all.empty() ? std::nullopt : std::optional<T>(all.back());
  }
  // Decisions made for this reason since the last Clear.
  int Decided(Reason reason) const;
  void Clear() { effects_.clear(); }

  RunStatus Status() const { return machine_.Status(); }
  RoundMachine& machine() { return machine_; }
  const Assignment& AssignmentOf(const std::string& name) const { return assignments_.at(name); }
  const std::string& NameOf(Ticket session) const { return names_.at(session); }
  Ticket SessionOf(const std::string& name) const { return sessions_.at(name); }
  const std::vector<Effect>& effects() const { return effects_; }

 private:
  CoreConfig config_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  const CoreState start_;
  RoundMachine machine_;
  CoreState folded_;  // start_ and all records
  std::vector<std::vector<Record>> records_;
  std::size_t steps_stored_max_ = std::numeric_limits<std::size_t>::max();
  std::vector<Effect> effects_;
  Ticket next_ticket_ = 1;
  std::map<std::string, Incarnation> incarnations_;
  std::map<std::string, Ticket> sessions_;
  std::map<Ticket, std::string> names_;
  std::map<std::string, Assignment> assignments_;
  std::optional<Round> committing_;
  IntervalReport report_{.tokens = 10};
  std::vector<Version> checkpoints_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_TESTS_SUPPORT_CORE_SCRIPT_H_
