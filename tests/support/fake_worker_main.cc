// autoloco-fake-worker: the worker with a trainer that needs no LibTorch, for tests of the protocol with real
// processes. Takes the flags of autoloco-worker. The environment shapes the training:
//   FAKE_WORKER_STEP_MS   every inner step takes at least this long; default 0
//   FAKE_WORKER_NAN_STEP  this step of the optimizer, counted from 0, leaves a NaN in the parameters
// Its momentum is the run's beta1, so that a lost optimizer state shows in the parameters. For benchmarks:
//   FAKE_WORKER_NOISE     trains nothing, and gives noise from this seed (tests/support/noise_trainer.h)
//   FAKE_WORKER_GATE      with noise: where the workers wait for each other (tests/support/gate.h)
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/environment.h"
#include "common/tensor/decoder.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/gate.h"
#include "tests/support/noise_trainer.h"
#include "worker/runtime/trainer_factory.h"
#include "worker/worker_app.h"

namespace autoloco::worker {
namespace {

// The text in the environment, if there is one.
std::optional<std::string> FromEnvironment(const std::string& name) {
  for (const std::string& variable : ProcessEnvironment()) {
    if (absl::StartsWith(variable, absl::StrCat(name, "="))) return variable.substr(name.size() + 1);
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<std::uint64_t>> NumberFromEnvironment(const std::string& name) {
  const std::optional<std::string> text = FromEnvironment(name);
  if (!text) return std::nullopt;
  std::uint64_t number = 0;
  if (absl::SimpleAtoi(*text, &number)) return number;
  return absl::InvalidArgumentError(absl::StrCat(name, ": expected a number, found ", *text));
}

absl::StatusOr<std::unique_ptr<Trainer>> MakeNoiseTrainer(Layout layout, std::uint64_t seed) {
  NoiseTrainerOptions options{.seed = seed};
  if (const std::optional<std::string> path = FromEnvironment("FAKE_WORKER_GATE")) {
    AUTOLOCO_ASSIGN_OR_RETURN(options.gate, test::Gate::Connect(*path));
  }
  return std::make_unique<NoiseTrainer>(std::move(layout), std::move(options));
}

class FakeTrainerFactory final : public TrainerFactory {
 public:
  absl::StatusOr<std::unique_ptr<Trainer>> Make(const DecoderShape& shape, const AdamWConfig& adamw,
                                                const DeviceOptions&) override {
    AUTOLOCO_ASSIGN_OR_RETURN(const std::optional<std::uint64_t> step_ms, NumberFromEnvironment("FAKE_WORKER_STEP_MS"));
    AUTOLOCO_ASSIGN_OR_RETURN(const std::optional<std::uint64_t> nan_step,
                              NumberFromEnvironment("FAKE_WORKER_NAN_STEP"));
    AUTOLOCO_ASSIGN_OR_RETURN(const std::optional<std::uint64_t> noise, NumberFromEnvironment("FAKE_WORKER_NOISE"));
    AUTOLOCO_ASSIGN_OR_RETURN(Layout layout, MakeDecoderLayout(shape));
    if (noise) return MakeNoiseTrainer(std::move(layout), *noise);
    FakeTrainerOptions options;
    options.step_duration = absl::Milliseconds(static_cast<std::int64_t>(step_ms.value_or(0)));
    options.momentum = adamw.beta1;
    options.nan_step = nan_step;
    return std::make_unique<FakeTrainer>(std::move(layout), options);
  }
};

}  // namespace
}  // namespace autoloco::worker

int main(int argc, char** argv) {
  autoloco::worker::FakeTrainerFactory factory;
  return autoloco::worker::RunWorkerApp(argc, argv, &factory);
}
