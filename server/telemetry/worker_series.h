// Which names the label `worker` may take: at most so many, and each only until an hour after its worker left.
// Operators choose the names, so nothing else bounds the number of time series.
#ifndef AUTOLOCO_SERVER_TELEMETRY_WORKER_SERIES_H_
#define AUTOLOCO_SERVER_TELEMETRY_WORKER_SERIES_H_

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"

namespace autoloco::server {

// The label of all workers beyond the limit.
inline constexpr char kOtherWorkers[] = "_other";

// Pure: no clock of its own. Not thread-safe.
class WorkerSeries {
 public:
  WorkerSeries(std::size_t names_max, absl::Duration keep) : names_max_(names_max), keep_(keep) {}

  // The label value for a worker that is present: its name, or kOtherWorkers where the names are used up.
  std::string Take(const std::string& name);
  // The same for one that may have left: no name is taken for it.
  std::string Find(const std::string& name) const;

  // `present`: the workers that have not left. Returns the names whose workers left `keep` ago or earlier; they are
  // free again, and their series must be removed.
  std::vector<std::string> Expire(const std::set<std::string>& present, Instant now);

 private:
  const std::size_t names_max_;
  const absl::Duration keep_;
  std::map<std::string, std::optional<Instant>> left_at_;  // by name; none: present
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_TELEMETRY_WORKER_SERIES_H_
