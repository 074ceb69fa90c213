// Text from a trained model, seen without LibTorch.
#ifndef AUTOLOCO_WORKER_TRAIN_TORCH_GENERATE_H_
#define AUTOLOCO_WORKER_TRAIN_TORCH_GENERATE_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/tensor/decoder.h"
#include "worker/train/sampler.h"

namespace autoloco::worker {

struct GenerateOptions {
  std::string prompt = {};     // bytes; empty stands for one line break
  std::uint32_t tokens = 200;  // bytes to draw
  SamplerConfig sampler = {};
  std::uint64_t seed = 1;
  std::uint32_t threads = 0;  // CPU threads of the whole process; 0: as LibTorch chooses
};

// The bytes that the model writes after the prompt, without the prompt, on the CPU. The model sees the last
// shape.context bytes. Equal arguments give equal text for one build and number of threads.
//
// `parameters`: fp32 in the order of MakeDecoderLayout(shape), borrowed for the call. INVALID_ARGUMENT: the shape does
// not fit, its vocabulary is not the 256 bytes, the number of parameters is not the layout's, or the temperature is
// negative. FAILED_PRECONDITION: the model's output is not finite. RESOURCE_EXHAUSTED, INTERNAL: as LibTorch fails.
absl::StatusOr<std::string> GenerateText(const DecoderShape& shape, std::span<const float> parameters,
                                         const GenerateOptions& options);

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_TRAIN_TORCH_GENERATE_H_
