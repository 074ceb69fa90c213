#include "server/runtime/commit_runner.h"

#include <cstdlib>
#include <utility>

#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "server/runtime/apply_commit.h"

namespace autoloco::server {
namespace {

[[noreturn]] void EndProcess(Round round, absl::string_view reason) {
  Log(LogLevel::kError, "commit_failed")
      .Add("round", round)
      .Add("reason", reason)
      .Add("advice",
           "parameters in memory are unusable; start the server again, and if that fails alike, with "
           "--resume=CHECKPOINT");
  std::abort();
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
  std::vector<CommitDelta> deltas;
  for (const Delta& delta : job.deltas) deltas.push_back({delta.payload->bytes(), delta.worker, delta.weight});
  ParameterStore& parameters = *tools_.parameters;
  absl::StatusOr<CommitOutcome> outcome =
      ApplyCommit({job.round, deltas, job.step, job.method}, &parameters, tools_.pool);
  if (!outcome.ok()) EndProcess(job.round, outcome.status().message());

  CommitFinished finished;
  finished.event.round = job.round;
  finished.event.params_digest = std::move(outcome->params_digest);
  finished.event.view_digest = std::move(outcome->view_digest);
  finished.event.stats = std::move(outcome->stats);
  finished.payload = std::move(outcome->payload);
  CrashPoint("snapshot_ready");
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
  content.view = parameters.view_values();
  content.view_digest = parameters.ViewDigest();
  absl::StatusOr<StoredCheckpoint> result = tools_.checkpoints->Write(content);
  tools_.telemetry->OnCheckpoint(result, tools_.clock->Now() - start);
  tools_.inbox->Post(CheckpointFinished{snapshot.version, std::move(result)});
}

}  // namespace autoloco::server
