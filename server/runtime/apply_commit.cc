#include "server/runtime/apply_commit.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/crash_point.h"
#include "common/base/status_macros.h"
#include "common/codec/delta_codec.h"
#include "server/kernels/commit.h"

namespace autoloco::server {
namespace {

static_assert(static_cast<std::uint8_t>(Codec::kFp32) == BroadcastMethod::kLosslessCodec);

Combining ToCombining(CombineKind combination) {
  switch (combination) {
    case CombineKind::kMean: return Combining::kMean;
    case CombineKind::kMedian: return Combining::kMedian;
    case CombineKind::kTrimmedMean: return Combining::kTrimmedMean;
  }
  return Combining::kMean;
}

OuterCoefficients ToCoefficients(const OuterStep& step, const CommitMethod& method) {
  OuterCoefficients coefficients{step.learning_rate, step.momentum.mu, step.momentum.nesterov};
  coefficients.combine = {ToCombining(method.combination), method.trim_share};
  const OuterFactors& factors = step.factors;
  if (!factors.plain) coefficients.corrected = CorrectedStep{factors.a, factors.c, factors.p, factors.g};
  return coefficients;
}

absl::StatusOr<Coding> ToCoding(const BroadcastMethod& method) {
  const Coding coding{static_cast<Codec>(method.codec), method.step, method.zstd_level};
  const bool stepped = IsQuantized(coding.codec) && coding.codec != Codec::kInt8;
  if (!IsKnown(coding.codec) || (stepped && !(coding.step >= kStepMin && coding.step <= kStepMax))) {
    return absl::InvalidArgumentError(
        absl::StrCat("no way to code broadcasts: codec ", static_cast<int>(method.codec), ", step ", method.step));
  }
  return coding;
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

absl::StatusOr<CommitOutcome> ApplyCommit(const CommitWork& work, ParameterStore* parameters, WorkPool* pool) {
  CrashPoint("commit_before");
  std::vector<Contribution> contributions;
  for (const CommitDelta& delta : work.deltas) {
    const std::optional<Codec> codec = CodecOf(delta.payload);
    if (!codec) return absl::InvalidArgumentError(absl::StrCat("the delta of ", delta.worker, " names no codec"));
    contributions.push_back({delta.payload, *codec, delta.weight});
  }
  AUTOLOCO_ASSIGN_OR_RETURN(const Coding broadcast, ToCoding(work.method.broadcast));
  const bool lossless = work.method.broadcast.lossless();
  if (lossless) {
    parameters->DropView();
  } else {
    AUTOLOCO_RETURN_IF_ERROR(parameters->MakeView());
  }
  AUTOLOCO_ASSIGN_OR_RETURN(
      CommitResult result,
      Commit({contributions, ToCoefficients(work.step, work.method), broadcast},
             {parameters->params(), parameters->momentum(), parameters->view_values(), parameters->view().get(),
              work.guard},
             pool));
  if (!result.statistics.finite) {
    return absl::OutOfRangeError("the outer step gave values that are not finite: the run diverged");
  }
  EncodedPayload::Header header{lossless ? PullForm::kFull : PullForm::kBroadcast, work.round + 1, result.params_digest,
                                broadcast.codec};
  CommitOutcome outcome;
  outcome.params_digest = std::move(result.params_digest);
  outcome.view_digest = std::move(result.view_digest);
  outcome.stats = ToStats(result.statistics, work.deltas);
  outcome.coding = result.coding;
  outcome.payload = std::make_shared<const EncodedPayload>(std::move(header), std::move(result.blocks));
  CrashPoint("commit_after");
  return outcome;
}

}  // namespace autoloco::server
