// Every metric of the server, declared once: name, type, unit, labels, help. Nothing else spells a metric's name.
//
// Base units, `_total` on counters, ratios from 0 to 1, times of day as `_timestamp_seconds`. Labels take values from
// closed sets; the one exception is `worker`, which worker_series.h bounds.
#ifndef AUTOLOCO_SERVER_TELEMETRY_METRIC_CATALOGUE_H_
#define AUTOLOCO_SERVER_TELEMETRY_METRIC_CATALOGUE_H_

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace autoloco::server {

enum class Metric {
  kBuildInfo,
  kRunInfo,
  kVersion,
  kRounds,
  kWorkers,
  kRoundParticipants,
  kRoundExpected,
  kWorkerLastSeen,
  kWorkerBaseVersion,
  kWorkerInnerStepsTarget,
  kWorkersAlive,
  kRoundAssigned,
  kRoundContributed,
  kRoundQuorum,
  kDeadlineSeconds,
  kWorkerShare,
  kWorkerStepSeconds,
  kPushes,
  kRoundSeconds,
  kRoundWaitSeconds,
  kCommitSeconds,
  kCommitHeldUp,
  kBroadcastBytesPerValue,
  kBroadcastErrorRatio,
  kTransferSeconds,
  kWireBytes,
  kRawBytes,
  kDeltaNorm,
  kCommitNorm,
  kMomentumNorm,
  kParameterNorm,
  kOuterLearningRate,
  kOuterMomentum,
  kIntervalSteps,
  kOuterRatio,
  kAgreement,
  kNoiseSteps,
  kDecisions,
  kTrainLoss,
  kEvalLoss,
  kTokens,
  kLedgerTokens,
  kLedgerOutstanding,
  kViewMismatches,
  kCheckpointLastSuccess,
  kCheckpointBytes,
  kCheckpointSeconds,
  kCheckpointFailures,
  kStorageSeconds,
  kStorageFailures,
  kGrpcStarted,
  kGrpcHandled,
  kGrpcHandlingSeconds,
  kProcessCpuSeconds,
  kProcessResidentMemory,
  kProcessVirtualMemory,
  kProcessOpenFds,
  kProcessMaxFds,
  kProcessStartTime,
};

enum class MetricType { kCounter, kGauge, kHistogram };

struct MetricSpec {
  Metric metric;
  const char* name;
  MetricType type;
  const char* unit;                   // "seconds", "bytes", ...; "" for plain numbers
  std::array<const char*, 4> labels;  // unused places at the end are null; values are given in this order
  const char* help;

  std::size_t label_count() const;
};

// In the order of Metric.
std::span<const MetricSpec> MetricCatalogue();
const MetricSpec& SpecOf(Metric metric);

// The label that names a worker.
inline constexpr char kWorkerLabel[] = "worker";

// Upper bounds of every histogram's buckets, in seconds.
const std::vector<double>& SecondsBuckets();

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_TELEMETRY_METRIC_CATALOGUE_H_
