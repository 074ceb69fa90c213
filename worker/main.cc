// autoloco-worker: the composition root. Everything that is not LibTorch is in worker_app.cc.
#include <memory>
#include <string>
#include <vector>

#include "worker/generate_command.h"
#include "worker/runtime/trainer_factory.h"
#include "worker/train/torch_trainer.h"
#include "worker/worker_app.h"

namespace {

using autoloco::DecoderShape;
using autoloco::worker::AdamWConfig;
using autoloco::worker::DeviceOptions;
using autoloco::worker::Trainer;

class TorchTrainerFactory final : public autoloco::worker::TrainerFactory {
 public:
  absl::StatusOr<std::unique_ptr<Trainer>> Make(const DecoderShape& shape, const AdamWConfig& adamw,
                                                const DeviceOptions& device) override {
    return autoloco::worker::MakeTorchTrainer(shape, adamw, {.device = device.device, .threads = device.threads});
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "generate") {
    return autoloco::worker::RunGenerateCommand(std::vector<std::string>(argv + 2, argv + argc));
  }
  TorchTrainerFactory factory;
  return autoloco::worker::RunWorkerApp(argc, argv, &factory);
}
