// The server as a process: the real core, with shells of the simulation's own around it (calls, storage thread, commit
// thread, recovery). What it keeps in memory dies with it; its disk does not.
#ifndef AUTOLOCO_TESTS_SIM_SERVER_NODE_H_
#define AUTOLOCO_TESTS_SIM_SERVER_NODE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/core/core_state.h"
#include "server/core/effects.h"
#include "server/core/events.h"
#include "server/core/round_machine.h"
#include "tests/sim/bugs.h"
#include "tests/sim/checkers.h"
#include "tests/sim/faults.h"
#include "tests/sim/model.h"
#include "tests/sim/network.h"
#include "tests/sim/process.h"
#include "tests/sim/scenario.h"
#include "tests/sim/server_disk.h"
#include "tests/sim/trace.h"

namespace autoloco::sim {

// What an operator wants: a worker shut out, or let in again.
struct Eviction {
  std::string worker;
  bool readmit = false;
};

using DecisionCounts = std::map<std::string, std::uint64_t>;

class ServerNode final : public Process, public ServerPort {
 public:
  struct Tools {
    const Scenario* scenario;
    World* world;
    Network* network;
    Faults* faults;
    Trace* trace;
    Checkers* checkers;
    ServerDisk* disk;
    Bug bug;
  };
  explicit ServerNode(const Tools& tools);

  // A new process: recovers from the disk and listens. REQUIRES: !running().
  void Start();
  void Kill(bool silently);
  // Kills it in the middle of a step, `effects` effects from now on.
  void KillAfterEffects(std::uint64_t effects) { effects_left_ = effects; }
  // A kill that has not come yet does not come.
  void SpareIt() { effects_left_.reset(); }
  void Terminate();
  // The operator's question; `answered` is called when this process answers. REQUIRES: running().
  void Ask(const Eviction& eviction, std::function<void(const absl::Status&)> answered);

  // How the last process ended by itself; none while one runs or after a kill.
  std::optional<server::RunFinished> finished() const { return finished_; }
  std::uint64_t effects_done() const { return effects_done_; }  // of all processes
  // How often each reason was given, by its name; of all processes.
  const DecisionCounts& decisions() const { return decisions_; }

  void OnMessage(StreamId stream, const ToServer& message) override;
  void OnStreamEnded(StreamId stream) override;
  void OnCall(CallId call, const Request& request) override;
  void OnMoving(CallId call) override;
  void OnPayload(CallId call, const std::string& payload, bool broken) override;
  void OnCallAborted(CallId call) override;

 private:
  struct OpenCall {
    CallId call = 0;
    std::optional<server::PushOpened> push;  // where it is one
    bool verified = false;
  };
  // Work of the commit thread: commits and checkpoints, one after the other.
  using Job = std::variant<server::StartCommit, server::StartCheckpoint>;

  void OnContinued() override;
  void DamageCheckpoints();

  // Recovery (server_recovery.cc): parameters of the durable version.
  void Recover();
  void Replay(Version from);

  void Step(const server::Event& event);
  void CheckState();
  void SetTimer();
  void Post(absl::Duration delay, server::Event event);

  void Do(const server::SendWelcome& effect);
  void Do(const server::SendAssignment& effect);
  void Do(const server::SendRoundClosed& effect);
  void Do(const server::SendAbort& effect);
  void Do(const server::SendDrain& effect);
  void Do(const server::CloseSession& effect);
  void Do(const server::AdmitPush& effect);
  void Do(const server::AnswerPush& effect);
  void Do(const server::RefusePush& effect);
  void Do(const server::DropPayload& effect);
  void Do(const server::DropSpooled& effect);
  void Do(const server::DropSpooledBefore& effect);
  void Do(const server::AnswerPushStatus& effect);
  void Do(const server::ServePull& effect);
  void ServeLive(Ticket ticket, const std::shared_ptr<PullReply>& reply);
  void Do(const server::RefusePull& effect);
  void Do(const server::StoreRecords& effect);
  void Do(const server::StartCommit& effect);
  void Do(const server::StartCheckpoint& effect);
  void Do(const server::Decision& effect);
  void Do(const server::RoundCommitted& effect);
  void Do(const server::EvaluationReady&) {}
  void Do(const server::AnswerEvict& effect);
  void Do(const server::RunFinished& effect);

  void Send(Ticket session, const ToWorker& message);
  void EndSession(Ticket session);
  void EndCall(Ticket ticket, const Reply& reply);
  OpenCall* FindCall(CallId call, Ticket* ticket);

  void AddJob(Job job);
  void RunJob();
  void BeginCommit(const server::StartCommit& commit, absl::Duration duration);
  void FinishCommit();
  // Version `version` is there: what pulls are served from.
  void Publish(Version version, CodedBlocks broadcast);
  void RunCheckpoint(const server::StartCheckpoint& checkpoint);
  void Exit();

  const Tools tools_;
  Dice dice_;
  std::uint64_t starts_ = 0;

  // Of one process.
  std::unique_ptr<server::RoundMachine> machine_;
  std::unique_ptr<StorageThread> storage_;
  server::CoreState fold_;  // of what it began with and every record since
  std::optional<absl::Time> timer_at_;
  absl::Time timers_from_ = absl::InfinitePast();
  Ticket next_ticket_ = 1;
  std::map<StreamId, Ticket> sessions_;
  std::map<Ticket, StreamId> streams_;
  std::map<Ticket, server::Sender> speakers_;  // by session
  std::map<Ticket, OpenCall> calls_;
  std::map<CallId, Ticket> tickets_;
  struct Asked {
    Eviction eviction;
    std::function<void(const absl::Status&)> answered;
  };
  std::map<Ticket, Asked> asked_;
  std::map<Ticket, std::string> payloads_;  // arrived, and not kept under a key yet
  Parameters parameters_;                   // the commit thread's, of version_
  Version version_ = 0;
  std::map<Version, CodedBlocks> broadcasts_;  // by the version they lead to; lossless: only that version, whole
  // What live pulls read: while a commit is under way its blocks change one by one.
  Values live_view_;
  std::vector<Version> live_versions_;
  struct Commit {
    Round round = 0;
    Parameters parameters;
    CodedBlocks broadcast;
    server::CommitStats stats;
  };
  std::optional<Commit> commit_;  // under way
  std::deque<Job> jobs_;
  bool job_running_ = false;
  std::map<std::string, Incarnation> newest_;  // by worker, for the planted bug

  std::optional<server::RunFinished> finished_;
  std::optional<std::uint64_t> effects_left_;
  std::uint64_t effects_done_ = 0;
  DecisionCounts decisions_;
  std::map<server::PushKey, int, server::PushKeyOrder> replayed_;  // for the planted bug
};

}  // namespace autoloco::sim

#endif  // AUTOLOCO_TESTS_SIM_SERVER_NODE_H_
