#include "server/rpc/convert.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/rpc/codec_proto.h"
#include "common/rpc/layout_proto.h"

namespace autoloco::server {
namespace {

constexpr std::size_t kRunIdBytesMax = 128;
constexpr std::size_t kReasonBytesMax = 256;
constexpr std::size_t kDigestDigits = 32;

absl::Status CheckRunId(const std::string& run_id) {
  if (run_id.size() <= kRunIdBytesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("run_id: want at most ", kRunIdBytesMax, " bytes, got ", run_id.size()));
}

absl::StatusOr<Sender> ToSender(const v1::Identity& identity) {
  if (!IsValidWorkerName(identity.worker())) {
    return absl::InvalidArgumentError("identity.worker: want [a-zA-Z0-9_.-]{1,64}");
  }
  AUTOLOCO_RETURN_IF_ERROR(CheckRunId(identity.run_id()));
  return Sender{identity.run_id(), {identity.worker(), identity.incarnation()}};
}

absl::Status CheckDigest(absl::string_view field, const std::string& digest) {
  if (digest.size() == kDigestDigits && digest.find_first_not_of("0123456789abcdef") == std::string::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(field, ": want ", kDigestDigits, " lower-case hexadecimal digits"));
}

absl::StatusOr<PullPart> ToPullPart(const v1::PullPart& part) {
  PullPart native{PullForm::kUnspecified, part.version(), part.first_block(), part.block_count()};
  switch (part.form()) {
    case v1::PULL_FORM_UNSPECIFIED: return native;
    case v1::PULL_FORM_FULL: native.form = PullForm::kFull; return native;
    case v1::PULL_FORM_BROADCAST: native.form = PullForm::kBroadcast; return native;
    case v1::PULL_FORM_LIVE: native.form = PullForm::kLive; return native;
    default: break;
  }
  return absl::InvalidArgumentError(absl::StrCat("pull.part.form: ", static_cast<int>(part.form()), " has no part"));
}

v1::PullForm ToProto(PullForm form) {
  switch (form) {
    case PullForm::kUnspecified: break;
    case PullForm::kNothing: return v1::PULL_FORM_NOTHING;
    case PullForm::kFull: return v1::PULL_FORM_FULL;
    case PullForm::kBroadcast: return v1::PULL_FORM_BROADCAST;
    case PullForm::kLive: return v1::PULL_FORM_LIVE;
  }
  return v1::PULL_FORM_UNSPECIFIED;
}

absl::StatusOr<WorkerPhase> ToPhase(v1::Progress::Phase phase) {
  switch (phase) {
    case v1::Progress::PHASE_JOINING: return WorkerPhase::kJoining;
    case v1::Progress::PHASE_TRAINING: return WorkerPhase::kTraining;
    case v1::Progress::PHASE_PUSHING: return WorkerPhase::kPushing;
    case v1::Progress::PHASE_WAITING: return WorkerPhase::kWaiting;
    case v1::Progress::PHASE_PULLING: return WorkerPhase::kPulling;
    case v1::Progress::PHASE_EVALUATING: return WorkerPhase::kEvaluating;
    default: return absl::InvalidArgumentError(absl::StrCat("progress.phase: ", static_cast<int>(phase), " is none"));
  }
}

absl::StatusOr<SessionEvent> FromHello(const v1::Hello& hello, Ticket session) {
  AUTOLOCO_ASSIGN_OR_RETURN(Sender sender, ToSender(hello.identity()));
  HelloReceived event{session, std::move(sender), hello.protocol_version()};
  if (!hello.has_held()) return event;
  const v1::HeldDelta& held = hello.held();
  AUTOLOCO_RETURN_IF_ERROR(CheckRunId(held.run_id()));
  AUTOLOCO_RETURN_IF_ERROR(CheckDigest("payload_digest", held.payload_digest()));
  event.held = HeldDelta{held.run_id(), held.incarnation(), held.round(), held.fragment(), held.payload_digest()};
  return event;
}

absl::StatusOr<SessionEvent> FromReady(const v1::Ready& ready, Ticket session) {
  AUTOLOCO_ASSIGN_OR_RETURN(Sender sender, ToSender(ready.identity()));
  AUTOLOCO_ASSIGN_OR_RETURN(Layout layout, FromProto(ready.layout()));
  return ReadyReceived{session,         std::move(sender),      std::move(layout),
                       ready.version(), ready.data().samples(), ready.data().hash()};
}

absl::StatusOr<SessionEvent> FromProgress(const v1::Progress& progress, Ticket session) {
  AUTOLOCO_ASSIGN_OR_RETURN(Sender sender, ToSender(progress.identity()));
  AUTOLOCO_ASSIGN_OR_RETURN(const WorkerPhase phase, ToPhase(progress.phase()));
  Progress native{phase,
                  progress.round(),
                  progress.steps_done(),
                  progress.loss(),
                  progress.tokens_per_second(),
                  progress.compute_share(),
                  std::nullopt};
  if (progress.has_evaluation()) {
    native.evaluation = EvaluationPart{progress.evaluation().version(), progress.evaluation().loss_sum(),
                                       progress.evaluation().tokens()};
  }
  return ProgressReceived{session, std::move(sender), native};
}

// At most kReasonBytesMax bytes, without a torn UTF-8 character: protobuf text must stay valid.
std::string Shorten(const std::string& text) {
  if (text.size() <= kReasonBytesMax) return text;
  std::size_t end = kReasonBytesMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

absl::StatusOr<SessionEvent> FromGoodbye(const v1::Goodbye& goodbye, Ticket session) {
  AUTOLOCO_ASSIGN_OR_RETURN(Sender sender, ToSender(goodbye.identity()));
  return GoodbyeReceived{session, std::move(sender), Shorten(goodbye.reason())};
}

IntervalReport ToReport(const v1::IntervalReport& report) {
  return {report.inner_steps(), report.tokens(),    report.learning_rate_sum(),  report.loss_mean(),
          report.loss_first(),  report.loss_last(), report.gradient_norm_mean(), report.step_seconds_mean()};
}

v1::PushOutcome ToProto(PushOutcome outcome) {
  switch (outcome) {
    case PushOutcome::kAccepted: return v1::PUSH_OUTCOME_ACCEPTED;
    case PushOutcome::kLate: return v1::PUSH_OUTCOME_LATE;
    case PushOutcome::kStale: return v1::PUSH_OUTCOME_STALE;
    case PushOutcome::kNonFinite: return v1::PUSH_OUTCOME_NON_FINITE;
    case PushOutcome::kNormOutlier: return v1::PUSH_OUTCOME_NORM_OUTLIER;
    case PushOutcome::kRoundAborted: return v1::PUSH_OUTCOME_ROUND_ABORTED;
  }
  return v1::PUSH_OUTCOME_UNSPECIFIED;
}

// Fills the message from one kind of effect.
class MessageFiller {
 public:
  MessageFiller(const RpcContext& context, v1::ServerMessage* message) : context_(context), message_(message) {}

  void operator()(const SendWelcome& effect) const {
    v1::Welcome* welcome = message_->mutable_welcome();
    welcome->set_run_id(context_.run_id);
    welcome->set_incarnation(effect.incarnation);
    *welcome->mutable_config() = context_.run;
    welcome->set_version(effect.version);
    welcome->set_view_digest(effect.view_digest);
    welcome->set_send_held(effect.send_held);
    welcome->set_held_reason(effect.held_reason);
    if (effect.held_outcome) welcome->set_held_outcome(ToProto(*effect.held_outcome));
  }
  void operator()(const SendAssignment& effect) const {
    v1::Assignment* assignment = message_->mutable_assignment();
    assignment->set_round(effect.assignment.round);
    assignment->set_inner_steps(effect.assignment.inner_steps);
    assignment->set_first_inner_step(effect.assignment.first_inner_step);
    assignment->set_first_sample(effect.assignment.first_sample);
    assignment->set_sample_count(effect.assignment.sample_count);
    assignment->set_evaluation_part(effect.assignment.evaluation_part);
    assignment->set_evaluation_parts(effect.assignment.evaluation_parts);
  }
  void operator()(const SendRoundClosed& effect) const {
    v1::RoundClosed* closed = message_->mutable_round_closed();
    closed->set_round(effect.round);
    closed->set_version(effect.version);
    closed->set_params_digest(effect.params_digest);
    closed->set_view_digest(effect.view_digest);
  }
  void operator()(const SendAbort& effect) const {
    message_->mutable_abort()->set_round(effect.round);
    message_->mutable_abort()->set_reason(effect.reason);
  }
  void operator()(const SendDrain& effect) const {
    message_->mutable_drain()->set_cause(effect.run_done ? v1::Drain::CAUSE_RUN_DONE
                                                         : v1::Drain::CAUSE_SERVER_SHUTDOWN);
    message_->mutable_drain()->set_reason(effect.reason);
  }

 private:
  const RpcContext& context_;
  v1::ServerMessage* const message_;
};

v1::Status::Phase ToProto(RunPhase phase) {
  switch (phase) {
    case RunPhase::kWaiting: return v1::Status::PHASE_WAITING;
    case RunPhase::kTraining: return v1::Status::PHASE_TRAINING;
    case RunPhase::kCommitting: return v1::Status::PHASE_COMMITTING;
    case RunPhase::kFinishing: return v1::Status::PHASE_FINISHING;
    case RunPhase::kDone: return v1::Status::PHASE_DONE;
    case RunPhase::kDraining: return v1::Status::PHASE_DRAINING;
  }
  return v1::Status::PHASE_UNSPECIFIED;
}

void FillWorker(const WorkerStatus& worker, absl::Time now, v1::WorkerStatus* proto) {
  proto->set_name(worker.worker.name);
  proto->set_incarnation(worker.worker.incarnation);
  proto->set_state(WorkerStateName(worker.state));
  proto->set_base_version(worker.base_version);
  proto->set_steps_done(worker.steps_done);
  proto->set_steps_target(worker.steps_target);
  proto->set_loss(worker.loss);
  proto->set_tokens_per_second(worker.tokens_per_second);
  proto->set_compute_share(worker.compute_share);
  proto->set_last_seen_seconds(absl::ToDoubleSeconds(now - worker.last_seen));
  proto->set_reason(worker.reason);
  proto->set_share(worker.share);
  proto->set_step_seconds(worker.step_seconds);
}

void FillRun(const RunStatus& run, absl::Time now, v1::Status* proto) {
  proto->set_phase(ToProto(run.phase));
  proto->set_reason(run.reason);
  proto->set_version(run.version);
  proto->set_round(run.round);
  proto->set_inner_steps_done(run.inner_steps_done);
  proto->set_inner_steps_total(run.inner_steps_total);
  proto->set_interval_steps(run.interval_steps);
  proto->set_interval_reason(run.interval_reason);
  proto->set_alive(run.alive);
  proto->set_assigned(run.assigned);
  proto->set_contributed(run.contributed);
  proto->set_applied(run.applied);
  proto->set_quorum(run.quorum);
  if (run.deadline) proto->set_deadline_seconds(absl::ToDoubleSeconds(*run.deadline - now));
  proto->set_deadline_reason(run.deadline_reason);
  proto->set_rounds_committed(run.rounds_committed);
  proto->set_rounds_aborted(run.rounds_aborted);
  proto->set_worker_inner_steps(run.worker_inner_steps);
  v1::TokenLedger* ledger = proto->mutable_ledger();
  ledger->set_leased(run.ledger.leased);
  ledger->set_applied(run.ledger.applied);
  ledger->set_late(run.ledger.late);
  ledger->set_rejected(run.ledger.rejected);
  ledger->set_lost(run.ledger.lost);
  ledger->set_unused(run.ledger.unused);
  ledger->set_outstanding(run.ledger_outstanding);
}

// The first point and the last 20, oldest first.
void FillEvaluations(const std::vector<EvaluationPoint>& points, v1::Status* proto) {
  constexpr std::size_t kLast = 20;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i != 0 && i + kLast < points.size()) continue;
    v1::EvaluationPoint* point = proto->add_evaluations();
    point->set_version(points[i].version);
    point->set_inner_step(points[i].inner_step);
    point->set_loss(points[i].loss);
    point->set_tokens(points[i].tokens);
  }
}

}  // namespace

absl::StatusOr<SessionEvent> ToSessionEvent(const v1::WorkerMessage& message, Ticket session) {
  switch (message.kind_case()) {
    case v1::WorkerMessage::kHello: return FromHello(message.hello(), session);
    case v1::WorkerMessage::kReady: return FromReady(message.ready(), session);
    case v1::WorkerMessage::kProgress: return FromProgress(message.progress(), session);
    case v1::WorkerMessage::kGoodbye: return FromGoodbye(message.goodbye(), session);
    case v1::WorkerMessage::KIND_NOT_SET: break;
  }
  return absl::InvalidArgumentError("session: want hello, ready, progress or goodbye, got an empty message");
}

absl::StatusOr<PushOpened> ToPushOpened(const v1::PushHeader& header, const v1::RunConfig& run, Ticket ticket) {
  AUTOLOCO_ASSIGN_OR_RETURN(Sender sender, ToSender(header.identity()));
  AUTOLOCO_RETURN_IF_ERROR(CheckDigest("payload_digest", header.payload_digest()));
  PushOpened event;
  event.ticket = ticket;
  event.sender = std::move(sender);
  event.round = header.round();
  event.fragment = header.fragment();
  event.payload_digest = header.payload_digest();
  event.payload_bytes = header.payload_bytes();
  event.layout_hash = header.layout_hash();
  event.codec_matches = header.codec() == run.codec().delta();
  event.leaving = header.leaving();
  event.report = ToReport(header.report());
  return event;
}

absl::StatusOr<ByteRange> ToRange(const v1::PushHeader& header) {
  const std::uint64_t first = header.first_byte();
  if (first > header.payload_bytes() || header.byte_count() > header.payload_bytes() - first) {
    return absl::InvalidArgumentError(absl::StrCat("first_byte, byte_count: want a part of ", header.payload_bytes(),
                                                   " bytes, got ", header.byte_count(), " from ", first));
  }
  return ByteRange{first, header.byte_count() == 0 ? header.payload_bytes() - first : header.byte_count()};
}

absl::StatusOr<PushStatusAsked> ToPushStatusAsked(const v1::PushStatusRequest& request, Ticket ticket) {
  AUTOLOCO_ASSIGN_OR_RETURN(Sender sender, ToSender(request.identity()));
  return PushStatusAsked{ticket, std::move(sender), request.round(), request.fragment()};
}

absl::StatusOr<PullOpened> ToPullOpened(const v1::PullRequest& request, Ticket ticket) {
  AUTOLOCO_ASSIGN_OR_RETURN(Sender sender, ToSender(request.identity()));
  if (!request.held_digest().empty()) AUTOLOCO_RETURN_IF_ERROR(CheckDigest("held_digest", request.held_digest()));
  AUTOLOCO_ASSIGN_OR_RETURN(const PullPart part, ToPullPart(request.part()));
  return PullOpened{ticket,
                    std::move(sender),
                    request.held_version(),
                    request.held_digest(),
                    request.held_mixed(),
                    request.header_only(),
                    part};
}

v1::ServerMessage ToProto(const SessionMessage& message, const RpcContext& context) {
  v1::ServerMessage proto;
  std::visit(MessageFiller(context, &proto), message);
  return proto;
}

v1::PushReply ToProto(PushOutcome outcome, const std::string& reason, bool replayed) {
  v1::PushReply reply;
  reply.set_outcome(ToProto(outcome));
  reply.set_reason(reason);
  reply.set_replayed(replayed);
  return reply;
}

v1::PushStatusReply ToProto(const AnswerPushStatus& answer, const std::vector<ByteRange>& missing) {
  v1::PushStatusReply reply;
  reply.set_known(answer.known);
  for (const ByteRange& range : missing) {
    v1::ByteRange* proto = reply.add_missing();
    proto->set_first_byte(range.first);
    proto->set_byte_count(range.count);
  }
  if (answer.known) *reply.mutable_reply() = ToProto(answer.outcome, answer.reason, true);
  return reply;
}

v1::PullHeader ToProto(const PullAnswer& answer) {
  v1::PullHeader header;
  header.set_form(ToProto(answer.form));
  header.set_version(answer.version);
  header.set_params_digest(answer.params_digest);
  header.set_view_digest(answer.view_digest);
  header.set_payload_bytes(answer.byte_count);
  header.set_layout_hash(answer.layout_hash);
  if (answer.form != PullForm::kNothing) header.set_codec(ToProto(answer.codec));
  header.set_first_block(answer.first_block);
  header.set_block_count(answer.block_count);
  return header;
}

v1::Status ToProto(const ServerStatus& status, const RpcContext& context) {
  v1::Status proto;
  proto.set_run_id(context.run_id);
  proto.set_server_version(AUTOLOCO_VERSION);
  FillRun(status.run, status.now, &proto);
  for (const WorkerStatus& worker : status.run.workers) FillWorker(worker, status.now, proto.add_workers());
  FillEvaluations(status.run.evaluations, &proto);
  proto.set_params_digest(status.params_digest);
  proto.set_view_digest(status.view_digest);
  proto.set_parameters(status.parameters);
  proto.set_bytes_up(status.bytes_up);
  proto.set_bytes_down(status.bytes_down);
  proto.set_uptime_seconds(absl::ToDoubleSeconds(status.uptime));
  proto.set_checkpoint(status.checkpoint);
  return proto;
}

}  // namespace autoloco::server
