#include "server/telemetry/metric_catalogue.h"

#include <algorithm>

namespace autoloco::server {
namespace {

constexpr MetricType kCounter = MetricType::kCounter;
constexpr MetricType kGauge = MetricType::kGauge;
constexpr MetricType kHistogram = MetricType::kHistogram;

// clang-format off
constexpr MetricSpec kCatalogue[] = {
    {Metric::kBuildInfo, "autoloco_build_info", kGauge, "", {"version", "commit"},
     "Always 1; says which build of the server this is."},
    {Metric::kRunInfo, "autoloco_run_info", kGauge, "", {"run_id", "model", "codec", "broadcast_codec"},
     "Always 1; says which run this is."},
    {Metric::kVersion, "autoloco_version", kGauge, "", {},
     "Version of the global parameters: the number of rounds committed since the run began."},
    {Metric::kRounds, "autoloco_rounds_total", kCounter, "", {"outcome"},
     "Rounds that ended, since this process started."},
    {Metric::kWorkers, "autoloco_workers", kGauge, "", {"state"}, "Workers known, by what they are doing."},
    {Metric::kRoundParticipants, "autoloco_round_participants", kGauge, "", {},
     "Deltas applied in the last commit."},
    {Metric::kRoundExpected, "autoloco_round_expected", kGauge, "", {},
     "Workers that were assigned work in the last committed round."},
    {Metric::kWorkerLastSeen, "autoloco_worker_last_seen_timestamp_seconds", kGauge, "seconds", {kWorkerLabel},
     "When the worker was last heard of, as Unix time."},
    {Metric::kWorkerBaseVersion, "autoloco_worker_base_version", kGauge, "", {kWorkerLabel},
     "Version that the worker trains from."},
    {Metric::kWorkerInnerStepsTarget, "autoloco_worker_inner_steps_target", kGauge, "steps", {kWorkerLabel},
     "Inner steps of the worker's current interval."},
    {Metric::kWorkersAlive, "autoloco_workers_alive", kGauge, "", {}, "Workers whose lease runs."},
    {Metric::kRoundAssigned, "autoloco_round_assigned", kGauge, "", {},
     "Workers that were assigned work in the open round."},
    {Metric::kRoundContributed, "autoloco_round_contributed", kGauge, "", {},
     "Deltas accepted for the open round."},
    {Metric::kRoundQuorum, "autoloco_round_quorum", kGauge, "", {},
     "Deltas of the open round that set the deadline for the others."},
    {Metric::kDeadlineSeconds, "autoloco_deadline_seconds", kGauge, "seconds", {},
     "When the open round closes without the deltas that are missing, from its opening; 0: it waits for all."},
    {Metric::kWorkerShare, "autoloco_worker_share", kGauge, "", {kWorkerLabel},
     "Weight of the worker's delta in the last commit; all shares sum to 1."},
    {Metric::kWorkerStepSeconds, "autoloco_worker_step_seconds", kGauge, "seconds", {kWorkerLabel},
     "Time of one inner step of the worker, as its intervals are sized by; 0: not known."},
    {Metric::kPushes, "autoloco_pushes_total", kCounter, "", {"outcome"},
     "Deltas answered, by outcome or by the reason of the refusal."},
    {Metric::kRoundSeconds, "autoloco_round_seconds", kHistogram, "seconds", {},
     "Time from the opening of a round to its commit."},
    {Metric::kRoundWaitSeconds, "autoloco_round_wait_seconds", kHistogram, "seconds", {},
     "Time from the first delta of a round to the last."},
    {Metric::kCommitSeconds, "autoloco_commit_seconds", kHistogram, "seconds", {},
     "Time that turning a round's deltas into the next version took."},
    {Metric::kCommitHeldUp, "autoloco_commit_held_up_seconds_total", kCounter, "seconds", {},
     "Time in which commits waited for a checkpoint of the version before them."},
    {Metric::kBroadcastBytesPerValue, "autoloco_broadcast_bytes_per_value", kGauge, "bytes", {},
     "Size of the last commit's broadcast over its values, all overheads counted; times 8: bits a value."},
    {Metric::kBroadcastErrorRatio, "autoloco_broadcast_error_ratio", kGauge, "", {},
     "Squared error of that broadcast over the square of what was to be sent, 0: lossless; -10 log10 of it is the "
     "signal-to-noise ratio in decibels."},
    {Metric::kTransferSeconds, "autoloco_transfer_seconds", kHistogram, "seconds", {"direction"},
     "Time of one whole transfer of a delta (push) or of parameters (pull)."},
    {Metric::kWireBytes, "autoloco_wire_bytes_total", kCounter, "bytes", {"direction"},
     "Payload bytes of whole transfers, as sent."},
    {Metric::kRawBytes, "autoloco_raw_bytes_total", kCounter, "bytes", {"direction"},
     "The same values in fp32: over the wire bytes, the compression ratio."},
    {Metric::kDeltaNorm, "autoloco_delta_norm", kGauge, "", {kWorkerLabel},
     "L2 norm of the worker's last applied delta."},
    {Metric::kCommitNorm, "autoloco_commit_norm", kGauge, "", {}, "L2 norm of the mean delta of the last commit."},
    {Metric::kMomentumNorm, "autoloco_momentum_norm", kGauge, "", {},
     "L2 norm of the outer momentum after the last commit."},
    {Metric::kParameterNorm, "autoloco_parameter_norm", kGauge, "", {},
     "L2 norm of the parameters after the last commit."},
    {Metric::kOuterLearningRate, "autoloco_outer_learning_rate", kGauge, "", {}, "Outer learning rate."},
    {Metric::kOuterMomentum, "autoloco_outer_momentum", kGauge, "", {}, "Outer momentum coefficient."},
    {Metric::kIntervalSteps, "autoloco_interval_steps", kGauge, "steps", {},
     "Inner steps between two synchronisations (H)."},
    {Metric::kOuterRatio, "autoloco_outer_r", kGauge, "", {},
     "Accumulated inner learning rate of the last committed round over the reference: what corrected its outer step."},
    {Metric::kAgreement, "autoloco_agreement", kGauge, "", {},
     "Mean cosine between the workers' deltas, of the last committed round that had several."},
    {Metric::kNoiseSteps, "autoloco_noise_steps", kGauge, "steps", {},
     "Inner steps after which a worker's delta is as much its own noise as common direction, by that round."},
    {Metric::kDecisions, "autoloco_decisions_total", kCounter, "", {"kind", "reason"},
     "What the server decided, and why."},
    {Metric::kTrainLoss, "autoloco_train_loss", kGauge, "", {kWorkerLabel},
     "Training loss that the worker last reported, nats a token."},
    {Metric::kEvalLoss, "autoloco_eval_loss", kGauge, "", {},
     "Held-out loss of the newest evaluated version, nats a token."},
    {Metric::kTokens, "autoloco_tokens_total", kCounter, "", {kWorkerLabel},
     "Tokens that the worker's accepted deltas were trained on."},
    {Metric::kLedgerTokens, "autoloco_ledger_tokens_total", kCounter, "", {"fate"},
     "Tokens leased to workers since the run began, and what became of them."},
    {Metric::kLedgerOutstanding, "autoloco_ledger_outstanding_tokens", kGauge, "", {},
     "Leased tokens that nothing has become of yet: leased less applied, late, rejected, lost and unused."},
    {Metric::kViewMismatches, "autoloco_view_mismatches_total", kCounter, "", {},
     "Workers found to hold other values than the server had as that version; they take all of them again."},
    {Metric::kCheckpointLastSuccess, "autoloco_checkpoint_last_success_timestamp_seconds", kGauge, "seconds", {},
     "When the newest checkpoint of this process was complete, as Unix time."},
    {Metric::kCheckpointBytes, "autoloco_checkpoint_bytes", kGauge, "bytes", {}, "Size of that checkpoint."},
    {Metric::kCheckpointSeconds, "autoloco_checkpoint_seconds", kHistogram, "seconds", {},
     "Time that writing a checkpoint took."},
    {Metric::kCheckpointFailures, "autoloco_checkpoint_failures_total", kCounter, "", {},
     "Checkpoints that could not be written."},
    {Metric::kStorageSeconds, "autoloco_storage_seconds", kHistogram, "seconds", {},
     "Time that making decisions, deltas and answers durable took, a batch."},
    {Metric::kStorageFailures, "autoloco_storage_failures_total", kCounter, "", {},
     "Attempts to store that failed: disk full, folder not writable. Workers wait meanwhile."},
    {Metric::kGrpcStarted, "grpc_server_started_total", kCounter, "", {"grpc_service", "grpc_method"},
     "Calls begun."},
    {Metric::kGrpcHandled, "grpc_server_handled_total", kCounter, "", {"grpc_service", "grpc_method", "grpc_code"},
     "Calls ended, by status code."},
    {Metric::kGrpcHandlingSeconds, "grpc_server_handling_seconds", kHistogram, "seconds",
     {"grpc_service", "grpc_method"}, "Time from the start of a call to its end."},
    {Metric::kProcessCpuSeconds, "process_cpu_seconds_total", kCounter, "seconds", {},
     "User and system CPU time."},
    {Metric::kProcessResidentMemory, "process_resident_memory_bytes", kGauge, "bytes", {}, "Resident memory."},
    {Metric::kProcessVirtualMemory, "process_virtual_memory_bytes", kGauge, "bytes", {}, "Virtual memory."},
    {Metric::kProcessOpenFds, "process_open_fds", kGauge, "", {}, "Open file descriptors."},
    {Metric::kProcessMaxFds, "process_max_fds", kGauge, "", {}, "Limit of open file descriptors."},
    {Metric::kProcessStartTime, "process_start_time_seconds", kGauge, "seconds", {},
     "When the process started, as Unix time."},
};
// clang-format on

}  // namespace

std::size_t MetricSpec::label_count() const {
  return static_cast<std::size_t>(
      std::count_if(labels.begin(), labels.end(), [](const char* l) { return l != nullptr; }));
}

std::span<const MetricSpec> MetricCatalogue() { return kCatalogue; }

const MetricSpec& SpecOf(Metric metric) { return kCatalogue[static_cast<std::size_t>(metric)]; }

const std::vector<double>& SecondsBuckets() {
  static const std::vector<double>& buckets =
      *new std::vector<double>{0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600};
  return buckets;
}

}  // namespace autoloco::server
