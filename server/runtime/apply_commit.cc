#include "server/runtime/apply_commit.h"

#include <cmath>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/crash_point.h"
#include "common/base/status_macros.h"
#include "common/codec/delta_codec.h"
#include "server/kernels/outer_step.h"

namespace autoloco::server {
namespace {

OuterCoefficients ToCoefficients(const OuterStep& step, const CombineRule& combine) {
  OuterCoefficients coefficients{step.learning_rate, step.momentum.mu, step.momentum.nesterov};
  coefficients.combine = combine;
  const OuterFactors& factors = step.factors;
  if (!factors.plain) coefficients.corrected = CorrectedStep{factors.a, factors.c, factors.p, factors.g};
  return coefficients;
}

CommitStats ToStats(const OuterStepStatistics& statistics, std::span<const CommitDelta> deltas) {
  CommitStats stats;
  stats.mean_delta_norm = std::sqrt(statistics.mean_delta_squared_norm);
  stats.momentum_norm = std::sqrt(statistics.momentum_squared_norm);
  stats.parameter_norm = std::sqrt(statistics.params_squared_norm);
  for (std::size_t i = 0; i < deltas.size(); ++i) {
    stats.delta_norm_by_worker[deltas[i].worker] = std::sqrt(statistics.delta_squared_norms[i]);
  }
  return stats;
}

}  // namespace

absl::StatusOr<CommitOutcome> ApplyCommit(std::span<const CommitDelta> deltas, const OuterStep& step,
                                          const CombineRule& combine, ParameterStore* parameters, WorkPool* pool) {
  CrashPoint("commit_before");
  std::vector<Contribution> contributions;
  for (const CommitDelta& delta : deltas) {
    const std::optional<Codec> codec = CodecOf(delta.payload);
    if (!codec) return absl::InvalidArgumentError(absl::StrCat("the delta of ", delta.worker, " names no codec"));
    contributions.push_back({delta.payload, *codec, delta.weight});
  }
  AUTOLOCO_ASSIGN_OR_RETURN(
      const OuterStepStatistics statistics,
      ApplyOuterStep(contributions, ToCoefficients(step, combine), parameters->params(), parameters->momentum(), pool));
  if (!statistics.finite) {
    return absl::OutOfRangeError("the outer step gave values that are not finite: the run diverged");
  }
  CommitOutcome outcome{parameters->ParamsDigest(), ToStats(statistics, deltas)};
  CrashPoint("commit_after");
  return outcome;
}

}  // namespace autoloco::server
