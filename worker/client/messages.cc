#include "worker/client/messages.h"

#include "absl/strings/str_cat.h"
#include "common/config/convert.h"
#include "common/config/validate.h"
#include "common/rpc/codec_proto.h"
#include "common/rpc/layout_proto.h"
#include "common/rpc/protocol.h"

namespace autoloco::worker {
namespace {

v1::Progress::Phase ToProto(WorkerPhase phase) {
  switch (phase) {
    case WorkerPhase::kJoining: return v1::Progress::PHASE_JOINING;
    case WorkerPhase::kTraining: return v1::Progress::PHASE_TRAINING;
    case WorkerPhase::kPushing: return v1::Progress::PHASE_PUSHING;
    case WorkerPhase::kWaiting: return v1::Progress::PHASE_WAITING;
    case WorkerPhase::kPulling: return v1::Progress::PHASE_PULLING;
    case WorkerPhase::kEvaluating: return v1::Progress::PHASE_EVALUATING;
  }
  return v1::Progress::PHASE_UNSPECIFIED;
}

AdamWConfig ToAdamW(const v1::InnerConfig& inner) {
  return {.beta1 = inner.beta1(),
          .beta2 = inner.beta2(),
          .epsilon = inner.epsilon(),
          .weight_decay = inner.weight_decay(),
          .clip_norm = inner.clip_norm()};
}

}  // namespace

v1::Identity ToProto(const Identity& identity, absl::string_view worker) {
  v1::Identity proto;
  proto.set_run_id(identity.run_id);
  proto.set_worker(std::string(worker));
  proto.set_incarnation(identity.incarnation);
  return proto;
}

v1::WorkerMessage HelloMessage(const Identity& identity, absl::string_view worker,
                               const std::optional<HeldDelta>& held) {
  v1::WorkerMessage message;
  message.mutable_hello()->set_protocol_version(kProtocolVersion);
  *message.mutable_hello()->mutable_identity() = ToProto(identity, worker);
  if (held) {
    v1::HeldDelta& proto = *message.mutable_hello()->mutable_held();
    proto.set_run_id(held->owner.run_id);
    proto.set_incarnation(held->owner.incarnation);
    proto.set_round(held->assignment.round);
    proto.set_fragment(0);
    proto.set_payload_digest(held->digest);
  }
  return message;
}

v1::WorkerMessage ReadyMessage(const ReadyReport& report, absl::string_view worker) {
  v1::WorkerMessage message;
  v1::Ready& ready = *message.mutable_ready();
  *ready.mutable_identity() = ToProto(report.identity, worker);
  *ready.mutable_layout() = autoloco::ToProto(report.layout);
  ready.set_version(report.version);
  ready.mutable_data()->set_samples(report.data_samples);
  ready.mutable_data()->set_hash(report.data_hash);
  return message;
}

v1::WorkerMessage ProgressMessage(const ProgressReport& report, absl::string_view worker) {
  v1::WorkerMessage message;
  v1::Progress& progress = *message.mutable_progress();
  *progress.mutable_identity() = ToProto(report.identity, worker);
  progress.set_phase(ToProto(report.phase));
  progress.set_round(report.round);
  progress.set_steps_done(report.steps_done);
  progress.set_loss(report.loss);
  progress.set_tokens_per_second(report.tokens_per_second);
  progress.set_compute_share(report.compute_share);
  if (report.evaluation) {
    v1::Evaluation& evaluation = *progress.mutable_evaluation();
    evaluation.set_version(report.evaluation->version);
    evaluation.set_loss_sum(report.evaluation->loss_sum);
    evaluation.set_tokens(report.evaluation->tokens);
  }
  return message;
}

v1::WorkerMessage GoodbyeMessage(const Identity& identity, absl::string_view worker, const std::string& reason) {
  v1::WorkerMessage message;
  *message.mutable_goodbye()->mutable_identity() = ToProto(identity, worker);
  message.mutable_goodbye()->set_reason(reason);
  return message;
}

v1::PushHeader PushHeaderMessage(const PushJob& job, absl::string_view worker) {
  const EncodedDelta& delta = *job.delta;
  v1::PushHeader header;
  *header.mutable_identity() = ToProto(job.identity, worker);
  header.set_leaving(job.leaving);
  header.set_round(delta.round);
  header.set_fragment(0);
  header.set_payload_digest(delta.digest);
  header.set_payload_bytes(delta.payload.size());
  header.set_layout_hash(delta.layout_hash);
  header.set_codec(ToProto(delta.codec));
  v1::IntervalReport& report = *header.mutable_report();
  report.set_inner_steps(delta.report.inner_steps);
  report.set_tokens(delta.report.tokens);
  report.set_learning_rate_sum(delta.report.learning_rate_sum);
  report.set_loss_mean(delta.report.loss_mean);
  report.set_loss_first(delta.report.loss_first);
  report.set_loss_last(delta.report.loss_last);
  report.set_gradient_norm_mean(delta.report.gradient_norm_mean);
  report.set_step_seconds_mean(delta.report.step_seconds_mean);
  return header;
}

absl::StatusOr<RunSettings> ToRunSettings(const v1::RunConfig& run) {
  const absl::Status valid = ValidateReceivedRun(run);
  if (!valid.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the server's run config does not suit this worker: ", valid.message()));
  }
  RunSettings settings;
  settings.shape = ToDecoderShape(run.model());
  settings.seed = run.seed();
  settings.total_inner_steps = run.total_inner_steps();
  settings.adamw = ToAdamW(run.inner());
  settings.schedule = ToScheduleConfig(run);
  settings.batch_size = run.inner().batch_size();
  settings.held_out_fraction = run.data().held_out_fraction();
  settings.evaluation_windows = run.evaluation().windows();
  settings.coding = ToCoding(run.codec());
  settings.broadcast = ToBroadcastCoding(run.codec());
  settings.strict = run.rounds().strict();
  return settings;
}

Assignment ToAssignment(const v1::Assignment& assignment) {
  return {.round = assignment.round(),
          .inner_steps = assignment.inner_steps(),
          .first_inner_step = assignment.first_inner_step(),
          .first_sample = assignment.first_sample(),
          .sample_count = assignment.sample_count(),
          .evaluation_part = assignment.evaluation_part(),
          .evaluation_parts = assignment.evaluation_parts()};
}

v1::PullForm ToProto(PullForm form) {
  switch (form) {
    case PullForm::kNothing: return v1::PULL_FORM_NOTHING;
    case PullForm::kFull: return v1::PULL_FORM_FULL;
    case PullForm::kBroadcast: return v1::PULL_FORM_BROADCAST;
    case PullForm::kLive: return v1::PULL_FORM_LIVE;
  }
  return v1::PULL_FORM_UNSPECIFIED;
}

std::optional<PullForm> ToPullForm(v1::PullForm form) {
  for (const PullForm known : {PullForm::kNothing, PullForm::kFull, PullForm::kBroadcast, PullForm::kLive}) {
    if (ToProto(known) == form) return known;
  }
  return std::nullopt;
}

absl::StatusOr<PushOutcome> ToOutcome(v1::PushOutcome outcome) {
  switch (outcome) {
    case v1::PUSH_OUTCOME_ACCEPTED: return PushOutcome::kAccepted;
    case v1::PUSH_OUTCOME_LATE: return PushOutcome::kLate;
    case v1::PUSH_OUTCOME_STALE: return PushOutcome::kStale;
    case v1::PUSH_OUTCOME_NON_FINITE: return PushOutcome::kNonFinite;
    case v1::PUSH_OUTCOME_NORM_OUTLIER: return PushOutcome::kNormOutlier;
    case v1::PUSH_OUTCOME_ROUND_ABORTED: return PushOutcome::kRoundAborted;
    default: return absl::InternalError(absl::StrCat("the server answered a push with unknown outcome ", outcome));
  }
}

}  // namespace autoloco::worker
