#include "tests/bench/learning/simulation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "tests/bench/learning/evaluation.h"
#include "tests/bench/learning/outer_run.h"
#include "tests/bench/learning/stacked_engine.h"

namespace autoloco::bench {
namespace {

// One model, one AdamW step each on the batches of as many workers as the arm says.
absl::StatusOr<RunResult> SimulateOneModel(const BenchSettings& settings, const BenchData& data, const Arm& arm,
                                           std::uint64_t seed, const std::function<void(std::uint64_t)>& progress) {
  const TextConfig& config = data.text->config();
  const std::uint64_t longer = arm.kind == Method::kSingleSameTokens ? config.workers : 1;
  const std::uint32_t batches = arm.kind == Method::kDataParallel ? config.workers : 1;
  const std::uint64_t steps = settings.steps * longer;
  BenchSettings scaled = settings;
  scaled.steps = steps;
  scaled.warmup_steps *= longer;
  const ScheduleConfig schedule = InnerSchedule(scaled, arm);
  AUTOLOCO_ASSIGN_OR_RETURN(const auto engine, StackedEngine::Make(BenchShape(config.context), {}, 1));
  std::vector<float> values(engine->layout().value_count());
  InitializeParameters(engine->layout(), seed, kInitStd, values);
  AUTOLOCO_RETURN_IF_ERROR(engine->SetParameters(0, values));

  RunResult result;
  JumpMeter jumps(scaled.warmup_steps);
  const std::size_t batch = std::size_t{settings.rows} * (config.context + 1);
  std::vector<std::int32_t> tokens(batch * batches);
  for (std::uint64_t step = 0; step < steps; ++step) {
    for (std::uint32_t i = 0; i < batches; ++i) {
      // A lone worker reads what all workers would have read, one after another, where it has the steps for it.
      const std::uint32_t worker = longer > 1 ? static_cast<std::uint32_t>(step % longer) : i;
      data.text->ReadBatch(arm.data, seed, worker, step / longer, std::span(tokens).subspan(i * batch, batch));
    }
    const double rate = LearningRateAt(schedule, step);
    AUTOLOCO_RETURN_IF_ERROR(engine->Step(tokens, std::vector<double>{rate}).status());
    if ((step + 1) % (arm.interval * longer) == 0) {
      AUTOLOCO_ASSIGN_OR_RETURN(const double loss, MeanLoss(data.round_windows, config.context, engine.get()));
      jumps.Add(step + 1, loss);
      result.losses.push_back(static_cast<float>(loss));
      progress(std::uint64_t{arm.interval} * longer * batches);
    }
  }
  AUTOLOCO_ASSIGN_OR_RETURN(result.loss, MeanLoss(data.final_windows, config.context, engine.get()));
  result.worst_jump = jumps.worst();
  if (arm.kind == Method::kDataParallel) {
    result.rounds = steps;
    result.bytes_per_worker = DataParallelBytes(settings, values.size());
  }
  return result;
}

RunResult Diverged() {
  RunResult result;
  result.loss = std::numeric_limits<double>::infinity();
  result.worst_jump = std::numeric_limits<double>::infinity();
  return result;
}

}  // namespace

DecoderShape BenchShape(std::uint32_t context) {
  DecoderShape shape;
  shape.vocab_size = 256;
  shape.width = 32;
  shape.layers = 2;
  shape.heads = 2;
  shape.kv_heads = 2;
  shape.mlp_hidden = 112;
  shape.context = context;
  return shape;
}

double DataParallelBytes(const BenchSettings& settings, std::uint64_t value_count) {
  return 2.0 * sizeof(float) * static_cast<double>(value_count) * static_cast<double>(settings.steps);
}

absl::StatusOr<RunResult> SimulateRun(const BenchSettings& settings, const BenchData& data, const Arm& arm,
                                      std::uint64_t seed, const std::function<void(std::uint64_t)>& progress) {
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<RunResult> result = arm.kind == Method::kOuter ? SimulateOuter(settings, data, arm, seed, progress)
                                                                : SimulateOneModel(settings, data, arm, seed, progress);
  if (absl::IsOutOfRange(result.status())) result = Diverged();
  if (result.ok()) {
    if (!std::isfinite(result->loss)) result = Diverged();
    result->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return result;
}

}  // namespace autoloco::bench
