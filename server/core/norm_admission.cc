#include "server/core/norm_admission.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_format.h"
#include "server/core/median.h"

namespace autoloco::server {
namespace {

struct Usual {
  std::size_t rounds = 0;
  double velocity_norm = 0;
  double learning_rate_sum = 0;
};

Usual UsualOf(std::span<const RoundRecord> history, std::size_t rounds) {
  std::vector<double> norms;
  std::vector<double> sums;
  const std::size_t first = history.size() > rounds ? history.size() - rounds : 0;
  for (const RoundRecord& record : history.subspan(first)) {
    const std::optional<double> norm = VelocityNormOf(record);
    if (!norm) continue;
    norms.push_back(*norm);
    sums.push_back(record.learning_rate_sum);
  }
  if (norms.empty()) return {};
  return {norms.size(), Median(norms), Median(sums)};
}

bool IsPositive(double value) { return std::isfinite(value) && value > 0; }

}  // namespace

std::optional<double> VelocityNormOf(const RoundRecord& record) {
  if (!record.statistics.delta_power || !IsPositive(record.learning_rate_sum)) return std::nullopt;
  const double norm = std::sqrt(*record.statistics.delta_power) / record.learning_rate_sum;
  if (!IsPositive(norm)) return std::nullopt;
  return norm;
}

NormVerdict JudgeNorm(const NormSettings& settings, std::span<const RoundRecord> history, const NormInput& input) {
  const bool known = IsPositive(input.learning_rate_sum);
  const double sum = known ? input.learning_rate_sum : input.learning_rate_sum_most;
  const double sane = kSaneVelocity * sum * std::sqrt(static_cast<double>(input.values));
  if (IsPositive(sum) && !(input.norm <= sane)) {
    return {false, 0,
            absl::StrFormat("its norm %.4g is beyond what training can give at an accumulated learning rate of %.4g "
                            "(at most %.4g)",
                            input.norm, sum, sane)};
  }
  const Usual usual = UsualOf(history, settings.rounds);
  if (!known || settings.limit <= 0 || usual.rounds < settings.rounds_min) return {};
  const double velocity = input.norm / sum;
  const double shortness = std::sqrt(std::max(1.0, usual.learning_rate_sum / sum));
  const double limit = settings.limit * shortness * usual.velocity_norm;
  if (velocity <= limit) return {};
  const std::string numbers = absl::StrFormat(
      "its norm per unit of learning rate, %.4g, is above the limit %.4g (%.3g x the median %.4g of %d "
      "rounds)",
      velocity, limit, settings.limit * shortness, usual.velocity_norm, usual.rounds);
  if (!settings.clip) return {false, 0, numbers};
  return {true, limit / velocity, absl::StrFormat("%s: it counts %.4g times", numbers, limit / velocity)};
}

}  // namespace autoloco::server
