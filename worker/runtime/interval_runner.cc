#include "worker/runtime/interval_runner.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "worker/runtime/interval_statistics.h"

namespace autoloco::worker {
namespace {

// Rows of tokens, reused from batch to batch.
class BatchBuffer {
 public:
  BatchBuffer(std::uint32_t rows, std::uint32_t context)
      : columns_(context + 1), tokens_(static_cast<std::size_t>(rows) * (context + 1)) {}

  std::span<std::int32_t> Row(std::uint32_t row) {
    return std::span(tokens_).subspan(static_cast<std::size_t>(row) * columns_, columns_);
  }
  TokenBatch FirstRows(std::uint32_t rows) const {
    return {.tokens = std::span(tokens_).first(static_cast<std::size_t>(rows) * columns_),
            .rows = rows,
            .columns = columns_};
  }

 private:
  const std::uint32_t columns_;
  std::vector<std::int32_t> tokens_;
};

// A worker that cannot take a single step would thin the mean out with deltas of zero for ever: it ends.
absl::Status JudgeSkipped(std::uint32_t skipped, std::uint32_t steps, const Assignment& assignment) {
  if (skipped == 0) return absl::OkStatus();
  Log(LogLevel::kWarning, "steps_skipped")
      .Add("round", assignment.round)
      .Add("skipped", skipped)
      .Add("steps", steps)
      .Add("reason", "the gradient was not finite");
  if (skipped < steps) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("no step of ", steps, " had a finite gradient"));
}

// What was really used, for comparing workers and for the trace of the samples: learning rates of the first and the
// last step, samples [first_sample, end_sample).
void LogTrained(const Assignment& assignment, const IntervalReport& report, double first_rate, double last_rate,
                std::uint64_t end_sample) {
  Log(LogLevel::kInfo, "interval_trained")
      .Add("round", assignment.round)
      .Add("steps", report.inner_steps)
      .Add("assigned_steps", assignment.inner_steps)
      .Add("first_inner_step", assignment.first_inner_step)
      .Add("first_learning_rate", first_rate)
      .Add("last_learning_rate", last_rate)
      .Add("first_sample", assignment.first_sample)
      .Add("end_sample", end_sample)
      .Add("loss", report.loss_mean);
}

}  // namespace

absl::StatusOr<IntervalReport> RunInterval(const EngineTools& tools, const Assignment& assignment) {
  const RunSettings& settings = *tools.settings;
  const std::uint64_t samples_wanted = std::uint64_t{assignment.inner_steps} * settings.batch_size;
  if (samples_wanted > assignment.sample_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "assignment of round ", assignment.round, ": ", assignment.inner_steps, " steps of ", settings.batch_size,
        " samples want ", samples_wanted, " samples, the lease has ", assignment.sample_count));
  }
  BatchBuffer batch(settings.batch_size, settings.shape.context);
  IntervalStatistics statistics(assignment.inner_steps);
  tools.board->IntervalBegan(assignment);
  std::uint64_t sample = assignment.first_sample;
  std::uint32_t skipped = 0;  // steps whose gradient was not finite: the trainer changes nothing then
  double first_rate = 0;
  double last_rate = 0;
  std::uint32_t steps = 0;
  for (; steps < assignment.inner_steps; ++steps) {
    if (tools.stop->cancel.load()) return absl::CancelledError("interval cancelled");
    const std::uint32_t end_with_steps = tools.stop->end_with_steps.load();
    if (steps > 0 && steps >= end_with_steps) break;
    if (end_with_steps != StopSignal::kNever) {
      return absl::CancelledError(absl::StrCat(steps, " steps done, fewer than ", end_with_steps));
    }
    const Instant begin = tools.clock->Now();
    for (std::uint32_t row = 0; row < settings.batch_size; ++row) tools.dataset->ReadSample(sample++, batch.Row(row));
    const double learning_rate = LearningRateAt(settings.schedule, assignment.first_inner_step + steps);
    AUTOLOCO_ASSIGN_OR_RETURN(const StepResult result,
                              tools.trainer->Step(batch.FirstRows(settings.batch_size), learning_rate));
    const StepRecord record{.loss = result.loss,
                            .gradient_norm = result.gradient_norm,
                            .learning_rate = learning_rate,
                            .tokens = std::uint64_t{settings.batch_size} * settings.shape.context,
                            .duration = tools.clock->Now() - begin};
    if (steps == 0) first_rate = learning_rate;
    last_rate = learning_rate;
    skipped += std::isfinite(result.gradient_norm) ? 0 : 1;
    statistics.Add(record);
    tools.board->StepDone(record);
  }
  AUTOLOCO_RETURN_IF_ERROR(JudgeSkipped(skipped, steps, assignment));
  const IntervalReport report = statistics.Report();
  LogTrained(assignment, report, first_rate, last_rate, sample);
  return report;
}

absl::StatusOr<EvaluationPart> RunEvaluation(const EngineTools& tools, const Assignment& assignment) {
  const RunSettings& settings = *tools.settings;
  const std::uint64_t available = tools.dataset->held_out_count();
  const std::uint64_t windows = std::min<std::uint64_t>(settings.evaluation_windows, available);
  BatchBuffer batch(settings.batch_size, settings.shape.context);
  EvaluationPart part{.version = assignment.round, .loss_sum = 0, .tokens = 0};
  const Instant begin = tools.clock->Now();
  std::uint64_t window = assignment.evaluation_part;
  while (window < windows) {
    if (tools.stop->cancel.load()) return absl::CancelledError("evaluation cancelled");
    std::uint32_t rows = 0;
    for (; rows < settings.batch_size && window < windows; window += assignment.evaluation_parts) {
      tools.dataset->ReadHeldOut(SpreadIndex(window, settings.evaluation_windows, available), batch.Row(rows++));
    }
    AUTOLOCO_ASSIGN_OR_RETURN(const LossSum sum, tools.trainer->Evaluate(batch.FirstRows(rows)));
    part.loss_sum += sum.nats;
    part.tokens += sum.tokens;
  }
  tools.board->Computed(tools.clock->Now() - begin);
  return part;
}

}  // namespace autoloco::worker
