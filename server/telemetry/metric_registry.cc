#include "server/telemetry/metric_registry.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "server/telemetry/process_stats.h"

namespace autoloco::server {
namespace {

prometheus::Labels NamedLabels(Metric metric, const LabelValues& values) {
  const MetricSpec& spec = SpecOf(metric);
  AUTOLOCO_CHECK(spec.label_count() == values.size());
  prometheus::Labels labels;
  for (std::size_t index = 0; index < values.size(); ++index) labels[spec.labels[index]] = values[index];
  return labels;
}

template <typename Type>
prometheus::Family<Type>* FamilyOf(const std::map<Metric, prometheus::Family<Type>*>& families, Metric metric) {
  const auto found = families.find(metric);
  AUTOLOCO_CHECK(found != families.end());
  return found->second;
}

// Add() is prometheus-cpp's only way to look a series up.
template <typename Type>
void RemoveFrom(prometheus::Family<Type>* family, const prometheus::Labels& labels) {
  if (family->Has(labels)) family->Remove(&family->Add(labels));
}

}  // namespace

absl::StatusOr<std::shared_ptr<MetricRegistry>> MetricRegistry::Create() {
  std::shared_ptr<MetricRegistry> registry(new MetricRegistry());
  try {
    for (const MetricSpec& spec : MetricCatalogue()) registry->Register(spec);
  } catch (const std::exception& error) {  // bad names, names used twice
    return absl::InternalError(absl::StrCat("metric catalogue: ", error.what()));
  }
  return registry;
}

void MetricRegistry::Register(const MetricSpec& spec) {
  switch (spec.type) {
    case MetricType::kCounter:
      counters_[spec.metric] = &prometheus::BuildCounter().Name(spec.name).Help(spec.help).Register(registry_);
      return;
    case MetricType::kGauge:
      gauges_[spec.metric] = &prometheus::BuildGauge().Name(spec.name).Help(spec.help).Register(registry_);
      return;
    case MetricType::kHistogram:
      histograms_[spec.metric] = &prometheus::BuildHistogram().Name(spec.name).Help(spec.help).Register(registry_);
      return;
  }
}

void MetricRegistry::Set(Metric metric, const LabelValues& labels, double value) {
  const prometheus::Labels named = NamedLabels(metric, labels);
  const MutexLock lock(&mutex_);
  FamilyOf(gauges_, metric)->Add(named).Set(value);
}

void MetricRegistry::Add(Metric metric, const LabelValues& labels, double amount) {
  const prometheus::Labels named = NamedLabels(metric, labels);
  const MutexLock lock(&mutex_);
  prometheus::Counter& counter = FamilyOf(counters_, metric)->Add(named);
  if (std::isfinite(amount) && amount > 0) counter.Increment(amount);
}

void MetricRegistry::Observe(Metric metric, const LabelValues& labels, double value) {
  const prometheus::Labels named = NamedLabels(metric, labels);
  const MutexLock lock(&mutex_);
  FamilyOf(histograms_, metric)->Add(named, SecondsBuckets()).Observe(value);
}

void MetricRegistry::Remove(Metric metric, const LabelValues& labels) {
  const prometheus::Labels named = NamedLabels(metric, labels);
  const MutexLock lock(&mutex_);
  if (SpecOf(metric).type == MetricType::kCounter) {
    RemoveFrom(FamilyOf(counters_, metric), named);
  } else {
    RemoveFrom(FamilyOf(gauges_, metric), named);
  }
}

std::vector<prometheus::MetricFamily> MetricRegistry::Collect() const {
  SetProcessStats();
  return registry_.Collect();
}

void MetricRegistry::SetProcessStats() const {
  const ProcessStats stats = ReadProcessStats();
  const MutexLock lock(&mutex_);
  prometheus::Counter& cpu = FamilyOf(counters_, Metric::kProcessCpuSeconds)->Add({});
  cpu.Increment(std::max(0.0, stats.cpu_seconds - cpu.Value()));
  const auto set = [this](Metric metric, double value) { FamilyOf(gauges_, metric)->Add({}).Set(value); };
  set(Metric::kProcessResidentMemory, stats.resident_bytes);
  set(Metric::kProcessVirtualMemory, stats.virtual_bytes);
  set(Metric::kProcessOpenFds, stats.open_fds);
  set(Metric::kProcessMaxFds, stats.max_fds);
  set(Metric::kProcessStartTime, stats.start_time_seconds);
}

}  // namespace autoloco::server
