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
  thread_.Post([this, snapshot = std::move(snapshot)]() mutable { BeginCheckpoint(std::move(snapshot)); });
}

void CommitRunner::RunCommit(const CommitJob& job) {
  const Instant start = tools_.clock->Now();
  std::vector<CommitDelta> deltas;
  for (const Delta& delta : job.deltas) deltas.push_back({delta.payload->bytes(), delta.worker, delta.weight});
  ParameterStore& parameters = *tools_.parameters;
  // A view that comes or goes takes the vectors away from their reader.
  if (job.method.broadcast.lossless() != (parameters.view() == nullptr)) WaitForCheckpoint();
  absl::StatusOr<CommitOutcome> outcome =
      ApplyCommit({job.round, deltas, job.step, job.method, reader_.get()}, &parameters, tools_.pool);
  if (!outcome.ok()) EndProcess(job.round, outcome.status().message());

  CommitFinished finished;
  finished.event.round = job.round;
  finished.event.params_digest = std::move(outcome->params_digest);
  finished.event.view_digest = std::move(outcome->view_digest);
  finished.event.stats = std::move(outcome->stats);
  finished.payload = std::move(outcome->payload);
  CrashPoint("snapshot_ready");
  tools_.telemetry->OnCommit(tools_.clock->Now() - start,
                             reader_ == nullptr ? absl::ZeroDuration() : reader_->held_up(), outcome->coding);
  reader_ = nullptr;  // it has all it needs
  tools_.inbox->Post(std::move(finished));
}

void CommitRunner::BeginCheckpoint(CoreSnapshot snapshot) {
  const Instant start = tools_.clock->Now();
  WaitForCheckpoint();
  ParameterStore& parameters = *tools_.parameters;
  reader_ = std::make_shared<CheckpointReader>(
      CheckpointReader::Vectors{parameters.params(), parameters.momentum(), parameters.view_values()}, tools_.clock);
  {
    const MutexLock lock(&mutex_);
    writing_ = true;
  }
  checkpoint_thread_.Post([this, start, snapshot = std::move(snapshot), reader = reader_] {
    WriteCheckpoint(snapshot, reader.get(), start);
  });
}

void CommitRunner::WriteCheckpoint(const CoreSnapshot& snapshot, CheckpointReader* reader, Instant start) {
  CheckpointContent content;
  content.snapshot = snapshot;
  if (!snapshot.history.empty() && snapshot.history.back().round + 1 == snapshot.version) {
    content.params_digest = snapshot.history.back().params_digest;
    content.view_digest = snapshot.history.back().view_digest;
  }
  content.vectors = reader;
  absl::StatusOr<StoredCheckpoint> result = tools_.checkpoints->Write(content);
  reader->Close();
  {
    const MutexLock lock(&mutex_);
    writing_ = false;
  }
  written_.NotifyAll();
  tools_.telemetry->OnCheckpoint(result, tools_.clock->Now() - start);
  tools_.inbox->Post(CheckpointFinished{snapshot.version, std::move(result)});
}

void CommitRunner::WaitForCheckpoint() {
  const MutexLock lock(&mutex_);
  while (writing_) written_.Wait(&mutex_);
}

}  // namespace autoloco::server
