#include "server/core/worker_speed.h"

#include <algorithm>
#include <cmath>

#include "server/core/combination.h"
#include "server/core/median.h"

namespace autoloco::server {
namespace {

constexpr std::size_t kObservations = 5;

bool IsUsable(double seconds) { return std::isfinite(seconds) && seconds > 0; }

std::optional<double> MedianOf(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return Median(values);
}

}  // namespace

void WorkerSpeeds::Recent::Add(double value) {
  values_.push_back(value);
  if (values_.size() > kObservations) values_.pop_front();
}

std::optional<double> WorkerSpeeds::Recent::Middle() const { return MedianOf({values_.begin(), values_.end()}); }

void WorkerSpeeds::ObserveDelivery(const std::string& worker, const IntervalReport& report, absl::Duration duration) {
  if (report.inner_steps == 0 || !IsUsable(report.step_seconds_mean)) return;
  Worker& known = workers_[worker];
  known.step_seconds.Add(report.step_seconds_mean);
  const double rest = absl::ToDoubleSeconds(duration) - report.inner_steps * report.step_seconds_mean;
  known.overhead.Add(std::max(rest, 0.0));
}

void WorkerSpeeds::ObserveProgress(const std::string& worker, const Progress& progress) {
  if (progress.phase != WorkerPhase::kTraining || settings_.tokens_per_step == 0) return;
  const double step_seconds = static_cast<double>(settings_.tokens_per_step) / progress.tokens_per_second;
  if (!IsUsable(progress.tokens_per_second) || !IsUsable(step_seconds)) return;
  Worker& known = workers_[worker];
  // The same step again says nothing new.
  if (progress.steps_done == 0 || (progress.round == known.round && progress.steps_done <= known.steps_done)) return;
  known.round = progress.round;
  known.steps_done = progress.steps_done;
  known.step_seconds.Add(step_seconds);
}

void WorkerSpeeds::Restore(const std::string& worker, double step_seconds, double overhead_seconds) {
  if (!IsUsable(step_seconds)) return;
  Worker& known = workers_[worker];
  known.step_seconds.Add(step_seconds);
  known.overhead.Add(overhead_seconds);
}

std::optional<double> WorkerSpeeds::StepSeconds(const std::string& worker) const {
  const auto it = workers_.find(worker);
  return it == workers_.end() ? std::nullopt : it->second.step_seconds.Middle();
}

std::optional<double> WorkerSpeeds::StepSecondsOrTypical(const std::string& worker) const {
  if (const std::optional<double> own = StepSeconds(worker)) return own;
  std::vector<double> all;
  for (const auto& [name, known] : workers_) {
    if (const std::optional<double> seconds = known.step_seconds.Middle()) all.push_back(*seconds);
  }
  return MedianOf(all);
}

double WorkerSpeeds::OverheadSeconds(const std::string& worker) const {
  const auto it = workers_.find(worker);
  if (it != workers_.end()) {
    if (const std::optional<double> own = it->second.overhead.Middle()) return *own;
  }
  std::vector<double> all;
  for (const auto& [name, known] : workers_) {
    if (const std::optional<double> overhead = known.overhead.Middle()) all.push_back(*overhead);
  }
  return MedianOf(all).value_or(0);
}

double WorkerSpeeds::SecondsOf(const std::string& worker, double step_seconds, std::uint32_t steps) const {
  return OverheadSeconds(worker) + steps * step_seconds;
}

std::vector<WorkerSpeeds::Share> WorkerSpeeds::StepsForAll(std::span<const std::string> workers, std::uint32_t steps,
                                                           std::uint64_t steps_most) const {
  std::vector<Share> shares;
  std::vector<double> seconds;
  for (const std::string& worker : workers) {
    shares.push_back({worker, steps});
    if (const std::optional<double> own = StepSeconds(worker)) seconds.push_back(SecondsOf(worker, *own, steps));
  }
  if (!settings_.matched || seconds.size() < 2) return shares;
  std::sort(seconds.begin(), seconds.end());
  const double reference = seconds[(seconds.size() - 1) / 2];
  const double band = std::max(settings_.dead_band * reference, absl::ToDoubleSeconds(settings_.tolerated_wait));
  const double least = std::max(1.0, std::ceil(settings_.ratio_min * steps));
  const double most = std::min(std::max(least, std::floor(settings_.ratio_max * steps)),
                               static_cast<double>(std::max<std::uint64_t>(steps_most, 1)));
  for (Share& share : shares) {
    const std::optional<double> own = StepSeconds(share.worker);
    if (!own || std::abs(SecondsOf(share.worker, *own, steps) - reference) <= band) continue;
    const double fitting = std::round((reference - OverheadSeconds(share.worker)) / *own);
    share.steps = static_cast<std::uint32_t>(std::clamp(fitting, std::min(least, most), most));
  }
  return shares;
}

std::optional<absl::Time> WorkerSpeeds::ExpectedClose(std::span<const Running> running) const {
  std::optional<absl::Time> close;
  for (const Running& one : running) {
    const std::optional<double> step_seconds = StepSecondsOrTypical(one.worker);
    if (!step_seconds) return std::nullopt;
    const bool reported = one.steps_done > 0;
    const std::uint32_t left = one.steps - std::min(one.steps, one.steps_done);
    // The overhead lies before the first step and after the last: all of it is ahead of a worker that has not trained,
    // half of it, as a guess, of one that has.
    const double overhead = OverheadSeconds(one.worker) / (reported ? 2 : 1);
    const absl::Time expected =
        (reported ? one.reported_at : one.assigned_at) + absl::Seconds(overhead + left * *step_seconds);
    if (!close || expected > *close) close = expected;
  }
  return close;
}

std::uint32_t WorkerSpeeds::FirstInterval(const std::string& worker, std::uint32_t steps, absl::Time now,
                                          std::optional<absl::Time> close) const {
  const std::optional<double> step_seconds = StepSecondsOrTypical(worker);
  if (!close || !step_seconds) return 0;
  const double fitting = std::floor((absl::ToDoubleSeconds(*close - now) - OverheadSeconds(worker)) / *step_seconds);
  const double least = std::max(1.0, std::ceil(std::max(settings_.first_share_min, kWorkShareMin) * steps));
  if (!(fitting >= least)) return 0;
  return static_cast<std::uint32_t>(std::min(fitting, static_cast<double>(steps)));
}

}  // namespace autoloco::server
