// What is remembered of one committed round, for ever: how long its interval was and why, how the outer step was
// corrected, and what came of it. The interval policy sees nothing else, so its decisions can be replayed from a run's
// history; `autoloco rounds` prints it.
#ifndef AUTOLOCO_SERVER_CORE_ROUND_RECORD_H_
#define AUTOLOCO_SERVER_CORE_ROUND_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "server/core/outer_schedule.h"
#include "server/core/reasons.h"
#include "server/core/round_statistics.h"

namespace autoloco::server {

struct RoundRecord {
  Round round = 0;
  // The decision.
  std::uint64_t first_inner_step = 0;
  std::uint32_t inner_steps = 0;  // H
  double interval = 0;            // H before rounding and before the cut at the end of the run
  Reason reason = Reason::kFixed;
  double learning_rate = 0;   // inner, at the interval's first step
  double momentum_scale = 1;  // of the buffer before the step; 1/2 after a spike
  bool final_average = false;
  // The outer step.
  double learning_rate_sum = 0;  // S_eff
  double ratio = 1;              // r
  OuterFactors factors;
  // Who took part, with what.
  std::uint32_t assigned = 0;
  std::uint32_t contributors = 0;
  std::uint64_t worker_steps = 0;  // inner steps of all contributors
  std::uint64_t tokens = 0;        // of all contributors
  // Means over the contributors by their shares; undefined where one of them is not finite.
  std::optional<double> loss_mean;
  std::optional<double> loss_first;
  std::optional<double> loss_last;
  std::optional<double> gradient_norm;
  std::optional<double> step_seconds;
  // What the commit saw, after the step.
  double mean_delta_norm = 0;
  double momentum_norm = 0;
  double parameter_norm = 0;
  RoundStatistics statistics;
  double seconds = 0;  // from opening to commit
  // Of version round + 1: the exact parameters, and the view, which is what every worker holds; empty: not known.
  std::string params_digest;
  std::string view_digest;
  bool operator==(const RoundRecord&) const = default;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_ROUND_RECORD_H_
