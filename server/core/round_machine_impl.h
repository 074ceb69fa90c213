// The inside of RoundMachine, shared by its source files: sessions, pushes and pulls, rounds, the end, what is
// recorded.
#ifndef AUTOLOCO_SERVER_CORE_ROUND_MACHINE_IMPL_H_
#define AUTOLOCO_SERVER_CORE_ROUND_MACHINE_IMPL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/core/config.h"
#include "server/core/core_state.h"
#include "server/core/durable_outbox.h"
#include "server/core/effects.h"
#include "server/core/evaluation_book.h"
#include "server/core/events.h"
#include "server/core/interval_policy.h"
#include "server/core/membership.h"
#include "server/core/norm_admission.h"
#include "server/core/open_round.h"
#include "server/core/push_register.h"
#include "server/core/records.h"
#include "server/core/round_deadline.h"
#include "server/core/round_machine.h"
#include "server/core/token_ledger.h"
#include "server/core/types.h"
#include "server/core/worker_speed.h"

namespace autoloco::server {

class RoundMachine::Impl {
 public:
  Impl(const CoreConfig& config, const CoreState& state, absl::Time now);

  void Step(absl::Time now, const Event& event, std::vector<Effect>* effects);
  std::optional<absl::Time> NextDeadline() const;
  RunStatus Status() const;
  CoreState DurableState() const;
  const std::vector<RoundRecord>& History() const { return state_.history; }

 private:
  // A push whose answer is still owed.
  struct PendingPush {
    PushKey key;
    std::string payload_digest;
    std::uint64_t payload_bytes = 0;
    IntervalReport report;
  };
  // Work that goes on past its round, since late deltas count.
  struct LateWork {
    RoundEntry entry;
    OpenRound::Times times;
  };
  // A life that has been welcomed.
  struct Claim {
    WorkerId id;
    std::optional<Member::Offer> offer;
  };
  // How the run is to end, once the last checkpoint is written.
  struct Ending {
    int exit_code = 0;
    Reason reason = Reason::kCompleted;
    std::string text;
  };

  // round_machine_status.cc
  void FillDeadline(RunStatus* status) const;

  // round_machine_sessions.cc
  void On(const HelloReceived& hello);
  void On(const ReadyReceived& ready);
  void On(const ProgressReceived& progress);
  void On(const GoodbyeReceived& goodbye);
  void On(const SessionClosed& closed);
  void On(const WorkerHeard& heard);
  absl::Status CheckHello(const HelloReceived& hello) const;
  absl::Status CheckRoomFor(const std::string& name) const;
  void Join(const HelloReceived& hello);
  // Whether the delta that `hello` names could still count, and why not; empty: it could.
  std::string WhyNotHeld(const HelloReceived& hello) const;
  // Says Welcome to the worker as `id`; returns the delta that is awaited of its former life.
  std::optional<Member::Offer> Welcome(const HelloReceived& hello, const WorkerId& id);
  // Whether messages under `worker` are this member's: its own, or about the delta of an earlier life that it offered.
  static bool SpeaksFor(const Member& member, const WorkerId& worker);
  void Reconnect(const HelloReceived& hello);
  void BeginLife(Ticket session, const Claim& claim);
  // Something has arrived under `id`: if that was a claim, it replaces the life before it.
  void TakeOverIfClaimed(const WorkerId& id);
  // Whether the next worker's dataset may be another one: nothing was trained, and nobody is there who holds it.
  bool DataIsOpen() const;
  absl::Status CheckReady(const ReadyReceived& ready) const;
  void ResendAssignment(const Member& member);
  void InheritInterval(const Member& member);
  void ExpireLeases();
  void Leave(Member* member, Reason reason, std::string text);
  // The member that speaks on `session` under this identity; null (and the session closed) where they do not match.
  Member* Speaker(Ticket session, const Sender& sender);
  void RefuseSession(Ticket session, const WorkerId& worker, const absl::Status& status);

  // round_machine_pushes.cc
  void On(const PushOpened& push);
  void On(const PushVerified& verified);
  void On(const PushCancelled& cancelled);
  void On(const PushStatusAsked& asked);
  // OK when the message comes from the current life of a known worker; sets `reason` otherwise.
  absl::Status CheckSender(const Sender& sender, Reason* reason) const;
  absl::Status CheckLife(const WorkerId& id) const;
  absl::Status CheckPushHeader(const PushOpened& push, Reason* reason) const;
  absl::Status CheckAssigned(const PushOpened& push, Reason* reason) const;
  absl::Status CheckWork(const IntervalReport& report) const;
  void EndWork(const std::string& name);
  bool AnswerIfRecorded(const PushOpened& push, const PushKey& key);
  bool AnswerIfClosed(const PushOpened& push, const PushKey& key);
  void RefusePushWith(Ticket ticket, const PushKey& key, Reason reason, absl::Status status);
  void AnswerPushWith(Ticket ticket, const PendingPush& push, PushOutcome outcome, std::string text);
  static PendingPush PendingOf(const PushOpened& push);
  void Deliver(Ticket ticket, const PendingPush& push, const NormVerdict& verdict);
  void Reject(Ticket ticket, const PendingPush& push, PushOutcome outcome, std::string text);
  void DropPendingPush(const PushKey& key);
  bool HasPendingPush(const std::string& worker) const;
  const RoundEntry* EntryOf(const PushKey& key) const;
  bool WillTakeLate(const PushKey& key) const;

  // round_machine_pulls.cc
  void On(const PullOpened& pull);
  Version OldestBroadcast() const;
  void AnswerParkedPulls();

  // round_machine.cc
  void On(const RecordsStored&) {}  // Step has told the outbox
  void On(const TimerFired& fired);
  void On(const ShutdownRequested& shutdown);
  // Does everything that has become possible or due: opens, closes, finishes.
  void Advance();
  void UpdateWaiting();
  std::string WaitingText() const;
  bool Stopping() const { return ending_.has_value() || shutting_down_; }
  void Decide(DecisionKind kind, Reason reason, WorkerId worker, std::string text);

  // round_machine_rounds.cc
  void On(const CommitDone& done);
  std::uint32_t WorkersNeeded() const;
  void OpenRoundIfReady();
  void StartTraining(const std::vector<Member*>& members);
  void BeginRound();
  void OpenLease(const WorkerId& worker, const Assignment& assignment);
  Assignment NextAssignment(const std::string& worker, std::uint32_t inner_steps);
  void CloseRoundIfDone();
  void CloseRound(Reason reason, std::string text);
  bool EndsWithThisRound() const;
  void AbortRound();
  void LoseLeasesOf(const std::string& worker);
  void SettleLeases();
  void EndRound();
  bool IsMissing(const std::string& name, const RoundEntry& entry) const;
  void BeginEvaluation(std::uint32_t parts);
  void TakeEvaluation(const WorkerId& worker, EvaluationPart part);
  void FinishEvaluation();

  // round_machine_elastic.cc
  void On(const EvictAsked& asked);
  std::vector<WorkerSpeeds::Share> ShareOut(const std::vector<std::string>& names) const;
  static std::string SharesText(const std::vector<WorkerSpeeds::Share>& shares, std::uint32_t steps);
  bool CarryOver(const Member& member);
  void KeepLateWork();
  bool IsWaitedFor(const RoundEntry& entry) const;
  void JoinOpenRound(const Member& member);
  std::optional<absl::Time> ExpectedClose() const;
  AwaitedWork AwaitedOf(const std::string& name, const RoundEntry& entry) const;
  RoundDeadline Deadline() const;
  void TellDeadline();
  NormVerdict JudgeNormOf(const PendingPush& push, double norm) const;
  void LearnFromDelivery(const std::string& name, const RoundEntry& entry);
  void LearnFromProgress(const std::string& name, const Progress& progress);
  absl::Status Evict(const std::string& name);
  absl::Status Readmit(const std::string& name);

  // round_machine_ending.cc
  void On(const CheckpointDone& done);
  void StartFinishing();
  void AssignEvaluation();
  void FinishIfEvaluated();
  void EndCompleted();
  void End(Ending ending);
  void EndIfStored();
  bool MayStillAsk(const Member& member) const;
  void FinishIfAllWereTold();
  void StartCheckpointOf();
  Round FirstRoundKept(Version version) const;

  // round_machine_records.cc. Everything that DurableState holds is recorded in the step that changes it; of state_,
  // participants_ and data_ it is enough to set run_changed_.
  void Restore(const CoreState& state);
  void RestoreRound(const RoundState& round);
  void RestoreEvaluation();
  void RecordMember(const Member& member);
  void RecordEntry(const std::string& name);
  void RecordOpening();

  template <typename T>
  void Emit(T effect) {
    effects_.push_back(Effect(std::move(effect)));
  }
  template <typename T>
  void Record(T record) {
    records_.push_back(server::Record(std::move(record)));
  }

  const CoreConfig config_;
  absl::Time now_;
  // Of the step under way.
  std::vector<Effect> effects_;
  std::vector<server::Record> records_;
  bool run_changed_ = false;
  bool timer_fired_ = false;
  DurableOutbox outbox_;

  RunPhase phase_ = RunPhase::kWaiting;
  CoreSnapshot state_;
  std::string view_digest_;     // of version state_.version
  std::string initial_digest_;  // of the view of version 0, where this process began with it
  Membership members_;
  std::set<std::string> participants_;  // strict mode: the names of the first round; empty before it
  std::optional<DataIdentity> data_;    // that shared data must have

  OpenRound round_;                 // the last one; where round_open_, the one that is open, decided or finishing
  bool round_open_ = false;         // stays so when the process ends: the round goes on after the restart
  bool commit_again_ = false;       // restored with a decided round: its commit has to run again
  std::map<Ticket, Claim> claims_;  // by session: welcomed beside a life that is alive, and not heard of since
  std::map<Ticket, PendingPush> pending_;
  std::vector<PullOpened> parked_pulls_;  // until the commit under way is done
  PushRegister register_;
  TokenLedger ledger_;
  EvaluationBook evaluations_;
  WorkerSpeeds speeds_;
  std::map<std::string, double> last_shares_;  // of the last commit, by worker
  std::map<std::string, LateWork> carried_;    // from the last round to the next one

  std::uint32_t last_applied_ = 0;
  std::optional<absl::Time> waiting_since_;  // too few workers since then
  std::optional<absl::Time> finish_deadline_;
  std::string interval_text_;                  // of the last interval decision
  std::string waiting_text_;                   // as last decided
  std::optional<Version> checkpoint_started_;  // newest version whose checkpoint was started
  std::optional<Version> checkpoint_stored_;   // newest one that succeeded
  std::uint32_t checkpoints_under_way_ = 0;
  bool evaluated_ = false;  // the last version
  bool shutting_down_ = false;
  std::string shutdown_text_;
  std::optional<Ending> ending_;
  bool ended_ = false;     // everybody who is there was told
  bool finished_ = false;  // and so was everybody who may still have come
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_ROUND_MACHINE_IMPL_H_
