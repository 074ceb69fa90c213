// The catalogue's metrics with their values: what a scrape returns. prometheus-cpp underneath, with its exceptions and
// its use-after-remove kept in here.
#ifndef AUTOLOCO_SERVER_TELEMETRY_METRIC_REGISTRY_H_
#define AUTOLOCO_SERVER_TELEMETRY_METRIC_REGISTRY_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "prometheus/collectable.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/telemetry/metric_catalogue.h"

namespace autoloco::server {

// Values of the labels, in the catalogue's order.
using LabelValues = std::vector<std::string>;

// Thread-safe. A call with another number of label values, or for a metric of another type, is a programmer error.
class MetricRegistry final : public prometheus::Collectable {
 public:
  // INTERNAL when prometheus-cpp refuses a name of the catalogue.
  static absl::StatusOr<std::shared_ptr<MetricRegistry>> Create();

  // A gauge's value; NaN and infinities are exported as they are.
  void Set(Metric metric, const LabelValues& labels, double value);
  // Raises a counter. An amount that is not positive and finite only makes the series exist.
  void Add(Metric metric, const LabelValues& labels, double amount);
  // One observation of a histogram.
  void Observe(Metric metric, const LabelValues& labels, double value);
  // Removes one series of a gauge or counter; fine when there is none.
  void Remove(Metric metric, const LabelValues& labels);

  // Everything, with the numbers of the process read anew. Called by the threads that answer scrapes.
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  MetricRegistry() = default;

  void Register(const MetricSpec& spec);
  void SetProcessStats() const;

  // Held by every change of a series, so that none is used while it is removed.
  mutable Mutex mutex_;
  prometheus::Registry registry_;
  // Constant after Create; the families live as long as the registry.
  std::map<Metric, prometheus::Family<prometheus::Counter>*> counters_;
  std::map<Metric, prometheus::Family<prometheus::Gauge>*> gauges_;
  std::map<Metric, prometheus::Family<prometheus::Histogram>*> histograms_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_TELEMETRY_METRIC_REGISTRY_H_
