#include "server/kernels/outer_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/kernels/commit.h"

namespace autoloco::server {

bool HasUniformWeights(std::span<const Contribution> contributions) {
  const double uniform = 1.0 / static_cast<double>(contributions.size());
  return std::all_of(contributions.begin(), contributions.end(), [uniform](const Contribution& contribution) {
    return contribution.weight == uniform;
  });
}

float VoteScale(std::span<const Contribution> contributions, std::size_t index) {
  return static_cast<float>(static_cast<double>(contributions.size()) * contributions[index].weight);
}

absl::Status ValidateOuterStep(std::span<const Contribution> contributions, const OuterCoefficients& coefficients) {
  if (contributions.empty()) return absl::InvalidArgumentError("outer step: no contribution");
  double sum = 0;
  for (std::size_t c = 0; c < contributions.size(); ++c) {
    const double weight = contributions[c].weight;
    if (!std::isfinite(weight) || weight <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("outer step: contribution ", c, ": want a positive weight, got ", weight));
    }
    sum += weight;
  }
  if (sum > kWeightSumMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("outer step: want weights that sum to at most ", kWeightSumMax, ", got ", sum));
  }
  if (!std::isfinite(coefficients.learning_rate) || !std::isfinite(coefficients.momentum)) {
    return absl::InvalidArgumentError(absl::StrCat("outer step: learning rate ", coefficients.learning_rate,
                                                   " and momentum ", coefficients.momentum, " must be finite"));
  }
  const CorrectedStep scalars = coefficients.corrected.value_or(CorrectedStep());
  for (const double scalar : {scalars.a, scalars.c, scalars.p, scalars.g}) {
    if (std::isfinite(scalar)) continue;
    return absl::InvalidArgumentError(absl::StrCat("outer step: want finite scalars of the correction, got ", scalar));
  }
  return absl::OkStatus();
}

absl::StatusOr<OuterStepStatistics> ApplyOuterStep(std::span<const Contribution> contributions,
                                                   const OuterCoefficients& coefficients, std::span<float> params,
                                                   std::span<float> momentum, WorkPool* pool) {
  AUTOLOCO_ASSIGN_OR_RETURN(CommitResult result,
                            Commit({contributions, coefficients, std::nullopt}, {params, momentum, {}}, pool));
  return std::move(result.statistics);
}

}  // namespace autoloco::server
