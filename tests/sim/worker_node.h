// A worker as a process: the real machine, with shells of the simulation's own around it (session, transfers, engine)
// and a disk that outlives it.
#ifndef AUTOLOCO_TESTS_SIM_WORKER_NODE_H_
#define AUTOLOCO_TESTS_SIM_WORKER_NODE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "tests/sim/base.h"
#include "tests/sim/bugs.h"
#include "tests/sim/checkers.h"
#include "tests/sim/faults.h"
#include "tests/sim/model.h"
#include "tests/sim/network.h"
#include "tests/sim/process.h"
#include "tests/sim/scenario.h"
#include "tests/sim/trace.h"
#include "worker/core/worker_machine.h"

namespace autoloco::sim {

// What a worker saves in one piece before it pushes: its last delta, with its own state before and after it.
struct WorkerDisk {
  Lineage lineage = 0;
  std::optional<Delta> saved;
};

class WorkerNode final : public Process, public ClientPort {
 public:
  struct Tools {
    const Scenario* scenario;
    World* world;
    Network* network;
    Faults* faults;
    Trace* trace;
    Checkers* checkers;
    Bug bug;
  };
  // `disk` is borrowed.
  WorkerNode(const Tools& tools, const WorkerPlan& plan, WorkerDisk* disk);

  // REQUIRES: !running().
  void Start();
  void Kill(bool silently);
  void KillAfterEffects(std::uint64_t effects) { effects_left_ = effects; }
  // A kill that has not come yet does not come.
  void SpareIt() { effects_left_.reset(); }
  void Terminate();

  const std::string& name() const { return plan_.name; }
  Network::Client client() const { return client_; }  // of the newest process
  // How the last process ended by itself; none while one runs or after a kill.
  std::optional<int> exit_code() const { return exit_code_; }

  void OnMessage(StreamId stream, const ToWorker& message) override;
  void OnStreamEnded(StreamId stream, const absl::Status& status) override;
  void OnReply(CallId call, const Reply& reply) override;
  void OnCallFailed(CallId call, const absl::Status& status) override;

 private:
  struct OpenCall {
    std::variant<worker::StartPull, worker::StartPush, worker::AskPushStatus> effect;
  };

  void Step(const worker::Event& event);
  void SetTimer();
  void Post(absl::Duration delay, worker::Event event);
  absl::Time LocalNow() const { return ToLocal(world()->now()); }
  absl::Time ToLocal(absl::Time time) const;
  absl::Time FromLocal(absl::Time local) const;

  void Do(const worker::OpenSession& effect);
  void Do(const worker::CloseSession& effect);
  void Do(const worker::SendReady& effect);
  void Do(const worker::SendProgress& effect);
  void Do(const worker::SendGoodbye& effect);
  void Do(const worker::Prepare& effect);
  void Do(const worker::StartPull& effect);
  void Do(const worker::CancelPull& effect) { Cancel(effect.ticket); }
  void Do(const worker::StartEvaluation& effect);
  void Do(const worker::StartTraining& effect);
  void Do(const worker::StartEncoding& effect);
  void Do(const worker::CancelWork& effect);
  void Do(const worker::EndTrainingEarly& effect);
  void Do(const worker::StartPush& effect);
  void Do(const worker::AskPushStatus& effect);
  void Do(const worker::CancelPush& effect) { Cancel(effect.ticket); }
  void Do(const worker::DropDelta& effect);
  void Do(const worker::Note& effect);
  void Do(const worker::Finish& effect);

  server::Sender SenderOf(const worker::Identity& identity) const;
  template <typename StartEffect>
  void Call(const StartEffect& effect, Request request, absl::Duration limit);
  void Cancel(Ticket ticket);
  void CallEnded(const OpenCall& open, const absl::Status& status, const Reply* reply);
  void PullDone(const worker::StartPull& effect, const absl::Status& status, const Reply* reply);
  void PushDone(const worker::StartPush& effect, const absl::Status& status, const Reply* reply);
  void AskDone(const worker::AskPushStatus& effect, const absl::Status& status, const Reply* reply);
  void Learned(const worker::Identity& identity, Round round, server::PushOutcome outcome);

  // The optimizer's state that the interval starts from: one that is trained again starts where it did before.
  TrainerState StateFor(const worker::Assignment& assignment) const;
  // What trains now, or nothing.
  struct Training {
    worker::StartTraining effect;
    std::string base_digest;
    absl::Time since;
  };
  std::uint32_t StepsDone() const;
  void FinishTraining(std::uint32_t steps);

  const Tools tools_;
  const WorkerPlan plan_;
  WorkerDisk* const disk_;
  Dice dice_;
  const std::uint64_t data_;

  // Of one process.
  std::unique_ptr<worker::WorkerMachine> machine_;
  Network::Client client_ = 0;
  std::optional<absl::Time> timer_at_;
  StreamId stream_ = 0;
  Ticket session_ = 0;
  std::map<CallId, OpenCall> calls_;
  std::map<Ticket, CallId> by_ticket_;
  Base base_;
  std::optional<Delta> trained_;  // and not encoded yet
  std::optional<Delta> delta_;    // the last one encoded; its state is this worker's
  Values residual_;               // that it carried
  Values next_residual_;          // that it left
  std::uint64_t pushes_of_delta_ = 0;
  std::uint64_t job_ = 0;  // counts evaluations and trainings; a cancelled one is not the newest
  std::optional<Training> training_;
  std::optional<worker::HeldDelta> named_;      // in the last Hello
  std::optional<worker::Event> cancelled_end_;  // what CancelWork makes of the job

  std::optional<int> exit_code_;
  std::optional<std::uint64_t> effects_left_;
};

}  // namespace autoloco::sim

#endif  // AUTOLOCO_TESTS_SIM_WORKER_NODE_H_
