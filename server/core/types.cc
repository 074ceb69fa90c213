#include "server/core/types.h"

#include <cmath>

namespace autoloco::server {
namespace {

bool Same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

bool IntervalReport::operator==(const IntervalReport& other) const {
  return inner_steps == other.inner_steps && tokens == other.tokens &&
         Same(learning_rate_sum, other.learning_rate_sum) && Same(loss_mean, other.loss_mean) &&
         Same(loss_first, other.loss_first) && Same(loss_last, other.loss_last) &&
         Same(gradient_norm_mean, other.gradient_norm_mean) && Same(step_seconds_mean, other.step_seconds_mean);
}

bool EvaluationPart::operator==(const EvaluationPart& other) const {
  return version == other.version && Same(loss_sum, other.loss_sum) && tokens == other.tokens;
}

}  // namespace autoloco::server
