// Held-out loss of one set of parameters, and how it moves from round to round.
#ifndef AUTOLOCO_TESTS_BENCH_LEARNING_EVALUATION_H_
#define AUTOLOCO_TESTS_BENCH_LEARNING_EVALUATION_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "tests/bench/learning/stacked_engine.h"

namespace autoloco::bench {

// Mean loss in nats a token over `windows`, (count, context + 1), which are shared out among the engine's models.
// REQUIRES: all models hold the same parameters; at least one window a model. Windows that do not share out evenly are
// left out at the end.
absl::StatusOr<double> MeanLoss(std::span<const std::int32_t> windows, std::uint32_t context, StackedEngine* engine);

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_LEARNING_EVALUATION_H_
