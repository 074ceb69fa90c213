// How the engine gets its trainer: LibTorch's in autoloco-worker, a formula in the tests' worker.
#ifndef AUTOLOCO_WORKER_RUNTIME_TRAINER_FACTORY_H_
#define AUTOLOCO_WORKER_RUNTIME_TRAINER_FACTORY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/tensor/decoder.h"
#include "worker/train/inner_config.h"
#include "worker/train/trainer.h"

namespace autoloco::worker {

struct DeviceOptions {
  std::string device = "auto";  // auto, cpu, cuda, cuda:N
  std::uint32_t threads = 0;    // CPU threads; 0: as the engine chooses
};

class TrainerFactory {
 public:
  virtual ~TrainerFactory() = default;
  // Called once, on the engine's thread, as is every method of the trainer. INVALID_ARGUMENT and FAILED_PRECONDITION:
  // the shape or the device does not fit. Other errors: as Trainer.
  virtual absl::StatusOr<std::unique_ptr<Trainer>> Make(const DecoderShape& shape, const AdamWConfig& adamw,
                                                        const DeviceOptions& device) = 0;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_RUNTIME_TRAINER_FACTORY_H_
