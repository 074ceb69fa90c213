// The worker's core: join, pull, evaluate, train, push, wait, leave, and what to do when any of it fails.
//
// Pure: the same configuration and sequence of (now, event) give the same effects, bit for bit. No clock, thread, file,
// socket, tensor or log; the shell (worker/runtime) and the simulation drive it alike. worker/core/README.md draws the
// states. What matters most:
// - One interval is in work at a time, always from the base buffer, which is never written while work runs on it.
// - A broken session is reconnected under the same incarnation while work goes on. When the lease ran out, the worker
//   joins as a new incarnation, and keeps the interval only if the server assigns exactly the same one again and the
//   parameters are the same by digest.
// - What the coding of a delta loses is carried to the next one, if the delta counts. A delta is therefore encoded only
//   when it is known what became of the one before: known long before, as a rule, while the next interval trains.
// - An encoded delta is kept until the server has answered for it, and is only ever sent again as the same bytes. One
//   that is left from an earlier incarnation, of this process or of the one before it, is named in Hello: the server
//   says whether it may still be sent, under its own key.
#ifndef AUTOLOCO_WORKER_CORE_WORKER_MACHINE_H_
#define AUTOLOCO_WORKER_CORE_WORKER_MACHINE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "worker/core/base_puller.h"
#include "worker/core/config.h"
#include "worker/core/effects.h"
#include "worker/core/events.h"
#include "worker/core/push_tracker.h"
#include "worker/core/session_link.h"
#include "worker/core/types.h"

namespace autoloco::worker {

// Not thread-safe: one thread, the run loop's.
class WorkerMachine {
 public:
  // `now` starts the wait for the server; the first TimerFired is due at once.
  WorkerMachine(const MachineConfig& config, absl::Time now);

  // Appends what must happen, in order. REQUIRES: `now` never decreases. After Finish nothing more happens.
  void Step(absl::Time now, const Event& event, std::vector<Effect>* effects);

  // The shell posts TimerFired at this time or later; none: nothing to wait for. May change with every Step.
  std::optional<absl::Time> NextDeadline() const;

  bool finished() const { return finished_; }
  WorkerPhase phase() const;

 private:
  enum class Stage {
    kPulling,
    kEvaluating,
    kTraining,
    kSettling,  // the delta is there; what became of the last one is not known yet
    kEncoding,
  };
  // The interval in work.
  struct Work {
    Assignment assignment;
    Identity owner;  // the incarnation that it was assigned to last
    Stage stage = Stage::kPulling;
    bool cancelled = false;   // its end is awaited
    bool confirmed = true;    // assigned to the present incarnation
    bool ends_early = false;  // this worker leaves: what it has is sent
  };
  struct Leaving {
    int exit_code = 0;
    std::string reason;
    absl::Time deadline;                      // ends whatever still runs
    absl::Time deliver_until;                 // what was trained may still be sent and answered
    std::optional<absl::Time> goodbye_until;  // set when said
  };
  enum class Preparation { kNotYet, kRunning, kDone };

  void On(const Welcomed& event);
  void On(const Assigned& event);
  void On(const RoundClosed& event);
  void On(const Aborted& event);
  void On(const Drained& event);
  void On(const SessionEnded& event);
  void On(const Prepared& event);
  void On(const PullEnded& event);
  void On(const EvaluationEnded& event);
  void On(const TrainingEnded& event);
  void On(const DeltaEncoded& event);
  void On(const PushEnded& event);
  void On(const PushStatusEnded& event);
  void On(const StopRequested& event);
  void On(const TimerFired& event);

  void Advance();
  void AdvanceJoin();
  void AdvanceWork();
  void AdvanceSettling();
  void CatchUp();
  void AdvanceHeartbeat();
  void AdvanceLeaving();

  // Goes on with the interval in work, whose version is held and which was not cancelled.
  void StartNextStage();
  // The base is in use.
  bool EngineBusy() const { return work_ && work_->stage != Stage::kPulling; }
  void CancelWorkInProgress(absl::string_view reason);
  // Version `version` exists: intervals of earlier rounds do not count any more.
  void DropOutdated(Version version);
  void Rejoin(absl::string_view reason);
  // `deliver`: what is trained or on its way is sent first, as far as the grace allows.
  void Leave(int exit_code, std::string reason, bool deliver);
  // Whether the interval in work can end as it stands and be sent.
  bool CanSendPart() const;
  // Whether it has been trained and can be sent.
  bool CanSendWhole() const;
  bool EndsEarly() const { return work_ && work_->ends_early && !work_->cancelled; }
  // The delta that Hello must name: it does not belong to the present incarnation.
  std::optional<HeldDelta> HeldOfEarlierLife() const;
  void JudgeHeld(const Welcomed& event);
  void PullServed(const PullEnded& event);
  void PushAnswered(PushOutcome outcome, const std::string& reason);
  void PushRefused(const absl::Status& status);
  void SendProgressNow();
  static std::string TextOfPause(const absl::Status& status, absl::Duration pause);
  void AddNote(NoteKind kind, Round round, std::string text, bool problem = false);

  const MachineConfig config_;
  absl::Time now_;
  std::vector<Effect>* effects_ = nullptr;  // of the Step under way

  Identity identity_;
  SessionLink link_;
  absl::Duration heartbeat_ = absl::Seconds(2);
  absl::Time heartbeat_at_;
  Version server_version_ = 0;
  bool partial_intervals_ = true;
  std::uint32_t late_versions_max_ = 0;
  std::optional<HeldDelta> named_;  // in the last Hello

  Preparation preparation_ = Preparation::kNotYet;
  bool base_checked_ = false;  // the base was compared with the server's under this incarnation
  bool ready_ = false;         // said in this session, or known to the server
  bool assigned_ = false;      // the server has given this incarnation work: it knows it is ready

  Ticket next_ticket_ = 1;
  BasePuller base_;
  std::optional<Work> work_;
  std::optional<Assignment> next_;  // starts when the engine is free
  std::optional<Assignment> done_;  // last one completed under this incarnation
  PushTracker push_;
  std::optional<Round> counted_;              // of the delta encoded last, once it is known that it counts
  std::optional<EvaluationPart> evaluation_;  // last one
  bool evaluation_unsent_ = false;

  std::optional<Leaving> leaving_;
  bool finished_ = false;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CORE_WORKER_MACHINE_H_
