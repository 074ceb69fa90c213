#include "server/runtime/effect_runner.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/crash_point.h"

namespace autoloco::server {

void EffectRunner::Run(const std::vector<Effect>& effects, Instant now) {
  for (const Effect& effect : effects) {
    std::visit([this, now](const auto& concrete) { Do(concrete, now); }, effect);
  }
}

void EffectRunner::Do(const AnswerPush& effect, Instant) {
  telemetry_->OnPushAnswered(effect.replayed ? "replayed" : PushOutcomeName(effect.outcome));
  CrashPoint("acknowledge_before");
  calls_->pushes().Answer(effect);
  CrashPoint("acknowledge_after");
}

void EffectRunner::Do(const RefusePush& effect, Instant) {
  telemetry_->OnPushAnswered(ReasonName(effect.reason));
  calls_->pushes().Refuse(effect.ticket, effect.status);
}

void EffectRunner::Do(const SendRoundClosed& effect, Instant now) {
  CrashPoint("broadcast_before");
  calls_->sessions().Send(effect.session, effect, now);
  CrashPoint("broadcast_after");
}

void EffectRunner::Do(const DropSpooled& effect, Instant) {
  payloads_->Drop(effect.push);
  records_->DropSpooled(effect.push);
}

void EffectRunner::Do(const DropSpooledBefore& effect, Instant) {
  payloads_->DropBefore(effect.round);
  records_->DropSpooledBefore(effect.round);
}

void EffectRunner::Do(const StoreRecords& effect, Instant) {
  RecordBatch batch{effect.sequence, effect.records, {}};
  for (const Record& record : effect.records) {
    const PushRecord* push = std::get_if<PushRecord>(&record);
    if (push == nullptr || push->payload == 0) continue;
    payloads_->Keep(push->payload, push->key);
    std::shared_ptr<Payload> payload = payloads_->Find(push->key);
    AUTOLOCO_CHECK(payload != nullptr);
    batch.payloads.push_back({push->key, std::move(payload)});
  }
  records_->Store(std::move(batch));
}

void EffectRunner::Do(const StartCommit& effect, Instant) {
  CrashPoint("decision_after");
  AUTOLOCO_CHECK(committing_.empty());
  CommitRunner::CommitJob job;
  job.round = effect.round;
  job.step = effect.step;
  job.method = effect.method;
  for (const StartCommit::Contribution& contribution : effect.contributions) {
    std::shared_ptr<Payload> payload = payloads_->Find(contribution.push);
    AUTOLOCO_CHECK(payload != nullptr);
    job.deltas.push_back({std::move(payload), contribution.push.worker.name, contribution.weight});
    committing_.push_back(contribution.push);
  }
  commits_->Commit(std::move(job));
}

void EffectRunner::OnCommitFinished() {
  for (const PushKey& push : committing_) payloads_->Drop(push);
  committing_.clear();
}

}  // namespace autoloco::server
