#include "server/telemetry/worker_series.h"

namespace autoloco::server {

std::string WorkerSeries::Take(const std::string& name) {
  if (left_at_.count(name) == 0 && left_at_.size() < names_max_) left_at_[name] = std::nullopt;
  return Find(name);
}

std::string WorkerSeries::Find(const std::string& name) const {
  return left_at_.count(name) > 0 ? name : kOtherWorkers;
}

std::vector<std::string> WorkerSeries::Expire(const std::set<std::string>& present, Instant now) {
  std::vector<std::string> expired;
  for (auto& [name, left_at] : left_at_) {
    if (present.count(name) > 0) {
      left_at.reset();
    } else if (!left_at.has_value()) {
      left_at = now;
    } else if (now - *left_at >= keep_) {
      expired.push_back(name);
    }
  }
  for (const std::string& name : expired) left_at_.erase(name);
  return expired;
}

}  // namespace autoloco::server
