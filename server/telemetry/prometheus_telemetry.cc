#include "server/telemetry/prometheus_telemetry.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/wall_time.h"

namespace autoloco::server {
namespace {

constexpr absl::Duration kStorageLogPause = absl::Minutes(1);

const char* StorageTaskName(StorageTask task) { return task == StorageTask::kRecords ? "records" : "room"; }

const char* DirectionName(Direction direction) { return direction == Direction::kPush ? "push" : "pull"; }

// Every outcome of a push that OnPushAnswered may be told; anything else counts as kOtherOutcome.
constexpr std::array<const char*, 16> kPushOutcomes = {
    "accepted", "replayed", "late",      "stale",        "non_finite", "norm_outlier",    "round_aborted", "layout",
    "checksum", "size",     "malformed", "not_assigned", "conflict",   "unauthenticated", "fenced",        "wrong_run"};
constexpr char kOtherOutcome[] = "other";

struct KindReasons {
  DecisionKind kind;
  Reason first;
  Reason last;
};
// The groups of the enum Reason.
constexpr std::array<KindReasons, 8> kReasonsByKind = {{
    {DecisionKind::kMembership, Reason::kJoined, Reason::kViewMismatch},
    {DecisionKind::kRound, Reason::kOpened, Reason::kNextRound},
    {DecisionKind::kInterval, Reason::kFixed, Reason::kLastInterval},
    {DecisionKind::kDeadline, Reason::kDeadline, Reason::kDeadlineFixed},
    {DecisionKind::kClose, Reason::kDeadline, Reason::kDeadlineFixed},
    {DecisionKind::kClose, Reason::kAllDelivered, Reason::kLeftOut},
    {DecisionKind::kAdmission, Reason::kAccepted, Reason::kConflict},
    {DecisionKind::kRun, Reason::kWaitingForWorkers, Reason::kCheckpointFailed},
}};

constexpr std::array<WorkerState, 6> kWorkerStates = {WorkerState::kJoining, WorkerState::kTraining,
                                                      WorkerState::kPushing, WorkerState::kWaiting,
                                                      WorkerState::kStale,   WorkerState::kLeft};

constexpr std::array<std::pair<const char*, std::uint64_t LedgerTotals::*>, 6> kLedgerFates = {{
    {"leased", &LedgerTotals::leased},
    {"applied", &LedgerTotals::applied},
    {"late", &LedgerTotals::late},
    {"rejected", &LedgerTotals::rejected},
    {"lost", &LedgerTotals::lost},
    {"unused", &LedgerTotals::unused},
}};

// A refused delta, a lost worker and a checkpoint that failed are worth a look; the rest is the run going its way.
LogLevel LevelOf(const Decision& decision) {
  switch (decision.reason) {
    case Reason::kRefused:
    case Reason::kSessionBroken:
    case Reason::kLeaseExpired:
    case Reason::kEvicted:
    case Reason::kViewMismatch:
    case Reason::kAborted:
    case Reason::kJoinTimeout:
    case Reason::kSpike:
    case Reason::kLeftOut:
    case Reason::kCheckpointFailed: return LogLevel::kWarning;
    case Reason::kAccepted:
    case Reason::kReplayed: return LogLevel::kInfo;
    default: return decision.kind == DecisionKind::kAdmission ? LogLevel::kWarning : LogLevel::kInfo;
  }
}

bool IsOfWorker(const MetricSpec& spec) {
  return spec.label_count() == 1 && absl::string_view(spec.labels[0]) == kWorkerLabel;
}

// Of nothing at all nothing is lost.
double ErrorRatio(const CodingReport& coding) {
  return coding.squared_signal > 0 ? coding.squared_error / coding.squared_signal : 0;
}

std::string Text(absl::string_view text) { return std::string(text); }

}  // namespace

absl::StatusOr<std::unique_ptr<PrometheusTelemetry>> PrometheusTelemetry::Create(const TelemetryOptions& options) {
  AUTOLOCO_ASSIGN_OR_RETURN(std::shared_ptr<MetricRegistry> registry, MetricRegistry::Create());
  std::unique_ptr<PrometheusTelemetry> telemetry(new PrometheusTelemetry(options, registry));
  telemetry->SetConstants(options);
  telemetry->StartCountersAtZero();
  if (!options.listen.empty()) {
    AUTOLOCO_ASSIGN_OR_RETURN(telemetry->endpoint_, MetricsEndpoint::Open(options.listen, std::move(registry)));
  }
  return telemetry;
}

PrometheusTelemetry::PrometheusTelemetry(const TelemetryOptions& options, std::shared_ptr<MetricRegistry> registry)
    : clock_(options.clock),
      registry_(std::move(registry)),
      series_(options.worker_series_max, options.worker_series_keep) {}

void PrometheusTelemetry::SetConstants(const TelemetryOptions& options) {
  registry_->Set(Metric::kBuildInfo, {options.build_version, options.build_commit}, 1);
  registry_->Set(Metric::kRunInfo, {options.run_id, options.model, options.codec, options.broadcast_codec}, 1);
  registry_->Set(Metric::kOuterLearningRate, {}, options.outer_learning_rate);
  registry_->Set(Metric::kOuterMomentum, {}, options.outer_momentum);
}

// A rate over a counter sees the first increment only where the series was there before.
void PrometheusTelemetry::StartCountersAtZero() {
  for (const char* outcome : {"committed", "aborted"}) registry_->Add(Metric::kRounds, {outcome}, 0);
  for (const char* outcome : kPushOutcomes) registry_->Add(Metric::kPushes, {outcome}, 0);
  for (const Direction direction : {Direction::kPush, Direction::kPull}) {
    registry_->Add(Metric::kWireBytes, {DirectionName(direction)}, 0);
    registry_->Add(Metric::kRawBytes, {DirectionName(direction)}, 0);
  }
  for (const KindReasons& group : kReasonsByKind) {
    for (int reason = static_cast<int>(group.first); reason <= static_cast<int>(group.last); ++reason) {
      registry_->Add(Metric::kDecisions, {DecisionKindName(group.kind), ReasonName(static_cast<Reason>(reason))}, 0);
    }
  }
  for (const auto& [fate, total] : kLedgerFates) registry_->Add(Metric::kLedgerTokens, {fate}, 0);
  registry_->Add(Metric::kViewMismatches, {}, 0);
  registry_->Add(Metric::kCheckpointFailures, {}, 0);
  registry_->Add(Metric::kStorageFailures, {}, 0);
}

void PrometheusTelemetry::OnDecision(const Decision& decision) {
  registry_->Add(Metric::kDecisions, {DecisionKindName(decision.kind), ReasonName(decision.reason)}, 1);
  if (decision.reason == Reason::kViewMismatch) registry_->Add(Metric::kViewMismatches, {}, 1);
  if (decision.reason == Reason::kAborted) registry_->Add(Metric::kRounds, {"aborted"}, 1);
  Log log(LevelOf(decision), DecisionKindName(decision.kind));
  log.Add("reason", ReasonName(decision.reason)).Add("round", decision.round);
  if (!decision.worker.name.empty()) {
    log.Add("worker", decision.worker.name).Add("incarnation", decision.worker.incarnation);
  }
  if (!decision.text.empty()) log.Add("detail", decision.text);
}

void PrometheusTelemetry::OnRoundCommitted(const RoundCommitted& round) {
  registry_->Add(Metric::kRounds, {"committed"}, 1);
  registry_->Set(Metric::kRoundParticipants, {}, round.applied);
  registry_->Set(Metric::kRoundExpected, {}, round.expected);
  registry_->Observe(Metric::kRoundSeconds, {}, absl::ToDoubleSeconds(round.duration));
  registry_->Observe(Metric::kRoundWaitSeconds, {}, absl::ToDoubleSeconds(round.wait));
  registry_->Set(Metric::kCommitNorm, {}, round.stats.mean_delta_norm);
  registry_->Set(Metric::kMomentumNorm, {}, round.stats.momentum_norm);
  registry_->Set(Metric::kParameterNorm, {}, round.stats.parameter_norm);
  const RoundStatistics& statistics = round.record.statistics;
  registry_->Set(Metric::kOuterRatio, {}, round.record.ratio);
  if (statistics.agreement) registry_->Set(Metric::kAgreement, {}, *statistics.agreement);
  if (statistics.noise_steps) registry_->Set(Metric::kNoiseSteps, {}, *statistics.noise_steps);
  {
    const MutexLock lock(&mutex_);
    for (const auto& [worker, norm] : round.stats.delta_norm_by_worker) {
      const std::string label = series_.Find(worker);
      if (label != kOtherWorkers) registry_->Set(Metric::kDeltaNorm, {label}, norm);
    }
  }
  Log(LogLevel::kInfo, "round_committed")
      .Add("round", round.round)
      .Add("inner_steps", round.record.inner_steps)
      .Add("applied", round.applied)
      .Add("expected", round.expected)
      .Add("seconds", absl::ToDoubleSeconds(round.duration))
      .Add("wait_seconds", absl::ToDoubleSeconds(round.wait))
      .Add("delta_norm", round.stats.mean_delta_norm)
      .Add("digest", round.record.params_digest)
      .Add("view_digest", round.record.view_digest);
}

void PrometheusTelemetry::OnEvaluation(const EvaluationPoint& point) {
  registry_->Set(Metric::kEvalLoss, {}, point.loss);
  Log(LogLevel::kInfo, "evaluation")
      .Add("version", point.version)
      .Add("inner_step", point.inner_step)
      .Add("loss", point.loss)
      .Add("tokens", point.tokens);
}

void PrometheusTelemetry::OnPushAnswered(absl::string_view outcome) {
  const bool known = std::find(kPushOutcomes.begin(), kPushOutcomes.end(), outcome) != kPushOutcomes.end();
  registry_->Add(Metric::kPushes, {known ? Text(outcome) : kOtherOutcome}, 1);
}

void PrometheusTelemetry::OnTransfer(Direction direction, std::uint64_t wire_bytes, std::uint64_t raw_bytes,
                                     absl::Duration duration) {
  const LabelValues labels = {DirectionName(direction)};
  registry_->Add(Metric::kWireBytes, labels, static_cast<double>(wire_bytes));
  registry_->Add(Metric::kRawBytes, labels, static_cast<double>(raw_bytes));
  registry_->Observe(Metric::kTransferSeconds, labels, absl::ToDoubleSeconds(duration));
}

void PrometheusTelemetry::OnCommit(absl::Duration duration, absl::Duration held_up, const CodingReport& broadcast) {
  registry_->Observe(Metric::kCommitSeconds, {}, absl::ToDoubleSeconds(duration));
  registry_->Add(Metric::kCommitHeldUp, {}, absl::ToDoubleSeconds(held_up));
  registry_->Set(Metric::kBroadcastBytesPerValue, {}, broadcast.bits_per_value() / 8);
  registry_->Set(Metric::kBroadcastErrorRatio, {}, ErrorRatio(broadcast));
}

void PrometheusTelemetry::OnCheckpoint(const absl::StatusOr<StoredCheckpoint>& result, absl::Duration duration) {
  const double seconds = absl::ToDoubleSeconds(duration);
  registry_->Observe(Metric::kCheckpointSeconds, {}, seconds);
  if (!result.ok()) {
    registry_->Add(Metric::kCheckpointFailures, {}, 1);
    Log(LogLevel::kError, "checkpoint_failed").Add("seconds", seconds).Add("error", Text(result.status().message()));
    return;
  }
  registry_->Set(Metric::kCheckpointLastSuccess, {}, absl::ToDoubleSeconds(WallTimeNow() - absl::UnixEpoch()));
  registry_->Set(Metric::kCheckpointBytes, {}, static_cast<double>(result->bytes));
  Log(LogLevel::kInfo, "checkpoint_written")
      .Add("path", result->path)
      .Add("bytes", result->bytes)
      .Add("seconds", seconds);
}

void PrometheusTelemetry::OnStorage(StorageTask task, const absl::Status& status, absl::Duration duration) {
  if (!status.ok()) {
    registry_->Add(Metric::kStorageFailures, {}, 1);
  } else if (task == StorageTask::kRecords) {
    registry_->Observe(Metric::kStorageSeconds, {}, absl::ToDoubleSeconds(duration));
  }
  const MutexLock lock(&mutex_);
  LogStorage(task, status);
}

// The first failure, another one, and once in a while that it goes on; not every attempt.
void PrometheusTelemetry::LogStorage(StorageTask task, const absl::Status& status) {
  LoggedTrouble& trouble = storage_troubles_[task];
  if (status.ok()) {
    if (trouble.open) Log(LogLevel::kWarning, "storage_works_again").Add("task", StorageTaskName(task));
    trouble.open = false;
    return;
  }
  const std::string error(status.message());
  const Instant now = clock_->Now();
  if (error == trouble.error && now - trouble.logged_at < kStorageLogPause) return;
  Log(LogLevel::kError, "storage_failed").Add("task", StorageTaskName(task)).Add("error", error);
  trouble = {error, now, true};
}

void PrometheusTelemetry::OnStatus(const RunStatus& status) {
  registry_->Set(Metric::kVersion, {}, static_cast<double>(status.version));
  registry_->Set(Metric::kIntervalSteps, {}, status.interval_steps);
  registry_->Set(Metric::kWorkersAlive, {}, status.alive);
  registry_->Set(Metric::kRoundAssigned, {}, status.assigned);
  registry_->Set(Metric::kRoundContributed, {}, status.contributed);
  registry_->Set(Metric::kRoundQuorum, {}, status.quorum);
  registry_->Set(Metric::kDeadlineSeconds, {},
                 status.deadline ? absl::ToDoubleSeconds(*status.deadline - status.opened_at) : 0);
  std::map<WorkerState, int> count_by_state;
  for (const WorkerStatus& worker : status.workers) ++count_by_state[worker.state];
  for (const WorkerState state : kWorkerStates) {
    registry_->Set(Metric::kWorkers, {WorkerStateName(state)}, count_by_state[state]);
  }
  const MutexLock lock(&mutex_);
  UpdateWorkers(status);
  UpdateLedger(status);
}

void PrometheusTelemetry::UpdateLedger(const RunStatus& status) {
  for (const auto& [fate, total] : kLedgerFates) {
    registry_->Add(Metric::kLedgerTokens, {fate}, static_cast<double>(status.ledger.*total - ledger_.*total));
  }
  registry_->Set(Metric::kLedgerOutstanding, {}, static_cast<double>(status.ledger_outstanding));
  ledger_ = status.ledger;
}

void PrometheusTelemetry::UpdateWorkers(const RunStatus& status) {
  const Instant now = clock_->Now();
  const absl::Time wall_now = WallTimeNow();
  std::set<std::string> present;
  for (const WorkerStatus& worker : status.workers) {
    if (worker.state != WorkerState::kLeft) present.insert(worker.worker.name);
  }
  for (const std::string& name : series_.Expire(present, now)) {
    for (const MetricSpec& spec : MetricCatalogue()) {
      if (IsOfWorker(spec)) registry_->Remove(spec.metric, {name});
    }
  }
  std::map<std::string, std::uint64_t> tokens_by_worker;
  for (const WorkerStatus& worker : status.workers) {
    const std::string& name = worker.worker.name;
    const std::string label = present.count(name) > 0 ? series_.Take(name) : series_.Find(name);
    const auto counted = tokens_by_worker_.find(name);
    const std::uint64_t before = counted == tokens_by_worker_.end() ? 0 : counted->second;
    const std::uint64_t more = worker.tokens >= before ? worker.tokens - before : worker.tokens;  // else: counts anew
    tokens_by_worker[name] = worker.tokens;
    if (label != kOtherWorkers || more > 0) registry_->Add(Metric::kTokens, {label}, static_cast<double>(more));
    // One gauge cannot speak for several workers.
    if (label != kOtherWorkers) UpdateWorker(worker, label, wall_now - (now - worker.last_seen));
  }
  tokens_by_worker_ = std::move(tokens_by_worker);
}

void PrometheusTelemetry::UpdateWorker(const WorkerStatus& worker, const std::string& label, absl::Time last_seen) {
  registry_->Set(Metric::kWorkerLastSeen, {label}, absl::ToDoubleSeconds(last_seen - absl::UnixEpoch()));
  registry_->Set(Metric::kWorkerBaseVersion, {label}, static_cast<double>(worker.base_version));
  registry_->Set(Metric::kWorkerInnerStepsTarget, {label}, worker.steps_target);
  registry_->Set(Metric::kWorkerShare, {label}, worker.share);
  registry_->Set(Metric::kWorkerStepSeconds, {label}, worker.step_seconds);
  registry_->Set(Metric::kTrainLoss, {label}, worker.loss);
}

void PrometheusTelemetry::OnCallStarted(absl::string_view service, absl::string_view method) {
  registry_->Add(Metric::kGrpcStarted, {Text(service), Text(method)}, 1);
}

void PrometheusTelemetry::OnCallHandled(absl::string_view service, absl::string_view method, absl::string_view code,
                                        absl::Duration duration) {
  registry_->Add(Metric::kGrpcHandled, {Text(service), Text(method), Text(code)}, 1);
  registry_->Observe(Metric::kGrpcHandlingSeconds, {Text(service), Text(method)}, absl::ToDoubleSeconds(duration));
}

}  // namespace autoloco::server
