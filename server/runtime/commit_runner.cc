#include "server/runtime/commit_runner.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "common/base/log.h"
#include "server/kernels/outer_step.h"

namespace autoloco::server {
namespace {

[[noreturn]] void EndProcess(Round round, absl::string_view reason) {
  Log(LogLevel::kError, "commit_failed")
      .Add("round", round)
      .Add("reason", reason)
      .Add("advice", "parameters in memory are unusable; start the server again to go on from the newest checkpoint");
  std::abort();
}

OuterCoefficients ToCoefficients(const OuterStep& step, const CombineRule& combine) {
  OuterCoefficients coefficients{step.learning_rate, step.momentum.mu, step.momentum.nesterov};
  coefficients.combine = combine;
  const OuterFactors& factors = step.factors;
  if (!factors.plain) coefficients.corrected = CorrectedStep{factors.a, factors.c, factors.p, factors.g};
  return coefficients;
}

CommitStats ToStats(const OuterStepStatistics& statistics, const CommitRunner::CommitJob& job) {
  CommitStats stats;
  stats.mean_delta_norm = std::sqrt(statistics.mean_delta_squared_norm);
  stats.momentum_norm = std::sqrt(statistics.momentum_squared_norm);
  stats.parameter_norm = std::sqrt(statistics.params_squared_norm);
  for (std::size_t i = 0; i < job.deltas.size(); ++i) {
    stats.delta_norm_by_worker[job.deltas[i].worker] = std::sqrt(statistics.delta_squared_norms[i]);
  }
  return stats;
}

}  // namespace

void CommitRunner::Commit(CommitJob job) {
  thread_.Post([this, job = std::move(job)] { RunCommit(job); });
}

void CommitRunner::Checkpoint(CoreSnapshot snapshot) {
  thread_.Post([this, snapshot = std::move(snapshot)] { RunCheckpoint(snapshot); });
}

void CommitRunner::RunCommit(const CommitJob& job) {
  const Instant start = tools_.clock->Now();
  std::vector<Contribution> contributions;
  for (const Delta& delta : job.deltas) {
    contributions.push_back({delta.payload->bytes(), settings_.codec, delta.weight});
  }
  ParameterStore& parameters = *tools_.parameters;
  const absl::StatusOr<OuterStepStatistics> statistics =
      ApplyOuterStep(contributions, ToCoefficients(job.step, settings_.combine), parameters.params(),
                     parameters.momentum(), tools_.pool);
  if (!statistics.ok()) EndProcess(job.round, statistics.status().ToString());
  if (!statistics->finite) EndProcess(job.round, "the outer step gave values that are not finite: the run diverged");

  CommitFinished finished;
  finished.event.round = job.round;
  finished.event.params_digest = parameters.ParamsDigest();
  finished.event.stats = ToStats(*statistics, job);
  finished.snapshot = parameters.Encode(job.round + 1, finished.event.params_digest, settings_.zstd_level, tools_.pool);
  tools_.telemetry->OnCommit(tools_.clock->Now() - start);
  tools_.inbox->Post(std::move(finished));
}

void CommitRunner::RunCheckpoint(const CoreSnapshot& snapshot) {
  const Instant start = tools_.clock->Now();
  ParameterStore& parameters = *tools_.parameters;
  CheckpointContent content;
  content.snapshot = snapshot;
  content.params_digest = parameters.ParamsDigest();
  content.params = parameters.params();
  content.momentum = parameters.momentum();
  absl::StatusOr<StoredCheckpoint> result = tools_.checkpoints->Write(content);
  tools_.telemetry->OnCheckpoint(result, tools_.clock->Now() - start);
  tools_.inbox->Post(CheckpointFinished{snapshot.version, std::move(result)});
}

}  // namespace autoloco::server
