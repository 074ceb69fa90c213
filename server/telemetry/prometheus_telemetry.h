// Telemetry for a real server: Prometheus metrics and one log line an event.
#ifndef AUTOLOCO_SERVER_TELEMETRY_PROMETHEUS_TELEMETRY_H_
#define AUTOLOCO_SERVER_TELEMETRY_PROMETHEUS_TELEMETRY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "server/runtime/ports.h"
#include "server/telemetry/metric_registry.h"
#include "server/telemetry/metrics_endpoint.h"
#include "server/telemetry/worker_series.h"

namespace autoloco::server {

struct TelemetryOptions {
  std::string listen;  // host:port of the endpoint, port 0: any free one; empty: no endpoint
  // Labels of autoloco_build_info and autoloco_run_info.
  std::string build_version;
  std::string build_commit;
  std::string run_id;
  std::string model;            // e.g. the preset
  std::string codec;            // of deltas, e.g. "fp32"
  std::string broadcast_codec;  // of what is sent of a new version
  double outer_learning_rate = 0;
  double outer_momentum = 0;
  std::size_t worker_series_max = 256;                 // further workers share the label "_other"
  absl::Duration worker_series_keep = absl::Hours(1);  // after a worker left
  const Clock* clock = MonotonicClock();               // the one of RunStatus's times; must outlive the telemetry
};

// Thread-safe. The endpoint serves until the object is destroyed.
class PrometheusTelemetry final : public Telemetry {
 public:
  // Errors as MetricsEndpoint::Open, naming the address: the server then ends with exit code 2.
  static absl::StatusOr<std::unique_ptr<PrometheusTelemetry>> Create(const TelemetryOptions& options);

  // The endpoint's port; 0: there is no endpoint.
  int port() const { return endpoint_ == nullptr ? 0 : endpoint_->port(); }

  void OnDecision(const Decision& decision) override;
  void OnRoundCommitted(const RoundCommitted& round) override;
  void OnEvaluation(const EvaluationPoint& point) override;
  void OnPushAnswered(absl::string_view outcome) override;
  void OnTransfer(Direction direction, std::uint64_t wire_bytes, std::uint64_t raw_bytes,
                  absl::Duration duration) override;
  void OnCommit(absl::Duration duration, absl::Duration held_up, const CodingReport& broadcast) override;
  void OnCheckpoint(const absl::StatusOr<StoredCheckpoint>& result, absl::Duration duration) override;
  void OnStorage(StorageTask task, const absl::Status& status, absl::Duration duration) override;
  void OnStatus(const RunStatus& status) override;
  void OnCallStarted(absl::string_view service, absl::string_view method) override;
  void OnCallHandled(absl::string_view service, absl::string_view method, absl::string_view code,
                     absl::Duration duration) override;

 private:
  PrometheusTelemetry(const TelemetryOptions& options, std::shared_ptr<MetricRegistry> registry);

  void SetConstants(const TelemetryOptions& options);
  void StartCountersAtZero();
  void UpdateWorkers(const RunStatus& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UpdateLedger(const RunStatus& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UpdateWorker(const WorkerStatus& worker, const std::string& label, absl::Time last_seen);

  // What the log has said of a storage task that fails.
  struct LoggedTrouble {
    std::string error;  // the last one that was logged
    Instant logged_at = absl::InfinitePast();
    bool open = false;  // no line has said since that it works again
  };
  void LogStorage(StorageTask task, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  const std::shared_ptr<MetricRegistry> registry_;
  std::unique_ptr<MetricsEndpoint> endpoint_;  // constant after Create

  Mutex mutex_;
  WorkerSeries series_ ABSL_GUARDED_BY(mutex_);
  std::map<StorageTask, LoggedTrouble> storage_troubles_ ABSL_GUARDED_BY(mutex_);
  LedgerTotals ledger_ ABSL_GUARDED_BY(mutex_);                                    // already counted
  std::map<std::string, std::uint64_t> tokens_by_worker_ ABSL_GUARDED_BY(mutex_);  // already counted
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_TELEMETRY_PROMETHEUS_TELEMETRY_H_
