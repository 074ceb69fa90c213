// Carries out what the core decided, in the order given. Decides nothing.
#ifndef AUTOLOCO_SERVER_RUNTIME_EFFECT_RUNNER_H_
#define AUTOLOCO_SERVER_RUNTIME_EFFECT_RUNNER_H_

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "server/core/effects.h"
#include "server/runtime/call_table.h"
#include "server/runtime/commit_runner.h"
#include "server/runtime/payload_store.h"
#include "server/runtime/ports.h"

namespace autoloco::server {

// Loop thread only.
class EffectRunner {
 public:
  // All borrowed; must outlive the runner.
  EffectRunner(CallTable* calls, PayloadStore* payloads, CommitRunner* commits, RecordStore* records,
               Telemetry* telemetry)
      : calls_(calls), payloads_(payloads), commits_(commits), records_(records), telemetry_(telemetry) {}

  // The effects of one event.
  void Run(const std::vector<Effect>& effects, Instant now);

  // Payloads of the commit under way were used: they are not held any longer (what the record store keeps of them is
  // another matter). Called before CommitDone reaches the core.
  void OnCommitFinished();

  // Set once the core has ended the run.
  const std::optional<RunFinished>& finished() const { return finished_; }

 private:
  void Do(const SendWelcome& effect, Instant now) { calls_->sessions().Send(effect.session, effect, now); }
  void Do(const SendAssignment& effect, Instant now) { calls_->sessions().Send(effect.session, effect, now); }
  void Do(const SendRoundClosed& effect, Instant now);
  void Do(const SendAbort& effect, Instant now) { calls_->sessions().Send(effect.session, effect, now); }
  void Do(const SendDrain& effect, Instant now) { calls_->sessions().Send(effect.session, effect, now); }
  void Do(const CloseSession& effect, Instant now) { calls_->sessions().Close(effect.session, effect.status, now); }
  void Do(const AdmitPush& effect, Instant now) { calls_->pushes().Admit(effect, now); }
  void Do(const AnswerPush& effect, Instant now);
  void Do(const RefusePush& effect, Instant now);
  void Do(const DropPayload& effect, Instant) { payloads_->Drop(effect.ticket); }
  void Do(const DropSpooled& effect, Instant);
  void Do(const DropSpooledBefore& effect, Instant);
  void Do(const StoreRecords& effect, Instant);
  void Do(const AnswerPushStatus& effect, Instant) { calls_->Answer(effect); }
  void Do(const AnswerEvict& effect, Instant) { calls_->Answer(effect); }
  void Do(const ServePull& effect, Instant now) { calls_->pulls().Serve(effect, now); }
  void Do(const RefusePull& effect, Instant) { calls_->pulls().Refuse(effect.ticket, effect.status); }
  void Do(const StartCommit& effect, Instant now);
  void Do(const StartCheckpoint& effect, Instant) { commits_->Checkpoint(effect.snapshot); }
  void Do(const Decision& effect, Instant) { telemetry_->OnDecision(effect); }
  void Do(const RoundCommitted& effect, Instant) { telemetry_->OnRoundCommitted(effect); }
  void Do(const EvaluationReady& effect, Instant) { telemetry_->OnEvaluation(effect.point); }
  void Do(const RunFinished& effect, Instant) { finished_ = effect; }

  CallTable* const calls_;
  PayloadStore* const payloads_;
  CommitRunner* const commits_;
  RecordStore* const records_;
  Telemetry* const telemetry_;
  std::vector<PushKey> committing_;  // payloads of the commit under way
  std::optional<RunFinished> finished_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_EFFECT_RUNNER_H_
