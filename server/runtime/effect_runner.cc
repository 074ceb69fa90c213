#include "server/runtime/effect_runner.h"

#include <utility>

#include "common/base/check.h"

namespace autoloco::server {

void EffectRunner::Run(const std::vector<Effect>& effects, Instant now) {
  for (const Effect& effect : effects) {
    std::visit([this, now](const auto& concrete) { Do(concrete, now); }, effect);
  }
}

void EffectRunner::Do(const AnswerPush& effect, Instant) {
  telemetry_->OnPushAnswered(effect.replayed ? "replayed" : PushOutcomeName(effect.outcome));
  calls_->pushes().Answer(effect);
}

void EffectRunner::Do(const RefusePush& effect, Instant) {
  telemetry_->OnPushAnswered(ReasonName(effect.reason));
  calls_->pushes().Refuse(effect.ticket, effect.status);
}

void EffectRunner::Do(const StartCommit& effect, Instant) {
  AUTOLOCO_CHECK(committing_.empty());
  CommitRunner::CommitJob job;
  job.round = effect.round;
  job.step = effect.step;
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
