// The LibTorch trainer, seen without LibTorch.
#ifndef AUTOLOCO_WORKER_TRAIN_TORCH_TRAINER_H_
#define AUTOLOCO_WORKER_TRAIN_TORCH_TRAINER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/tensor/decoder.h"
#include "worker/train/inner_config.h"
#include "worker/train/trainer.h"

namespace autoloco::worker {

struct TorchTrainerOptions {
  std::string device = "auto";  // auto, cpu, cuda or cuda:N; auto: CUDA when LibTorch can use it, else the CPU
  std::uint32_t threads = 0;    // CPU threads of the whole process; 0: as LibTorch chooses
};

// A trainer of the decoder with all parameters 0: call SetParameters before the first step. Equal calls in equal order
// give bit-identical results for one build, device and number of threads. A step whose gradient is not finite returns
// its loss and norm and changes neither parameters nor the optimizer's state.
//
// INVALID_ARGUMENT: the shape does not fit or the device's name is not known. FAILED_PRECONDITION: CUDA is asked for
// and there is none. RESOURCE_EXHAUSTED: the device's memory does not suffice. INTERNAL: another error of LibTorch.
absl::StatusOr<std::unique_ptr<Trainer>> MakeTorchTrainer(const DecoderShape& shape, const AdamWConfig& config,
                                                          const TorchTrainerOptions& options);

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_TRAIN_TORCH_TRAINER_H_
