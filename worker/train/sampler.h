// Draws one token from a model's logits.
#ifndef AUTOLOCO_WORKER_TRAIN_SAMPLER_H_
#define AUTOLOCO_WORKER_TRAIN_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace autoloco::worker {

struct SamplerConfig {
  double temperature = 0.8;  // 0: always the likeliest token
  std::uint32_t top_k = 0;   // only the k likeliest tokens; 0: all
};

// The token at quantile `uniform`, in [0, 1), of softmax(logits / temperature) over the top_k likeliest, in token
// order; among equal logits the smaller token counts as likelier. REQUIRES: logits are finite, at least one;
// temperature >= 0.
std::size_t SampleToken(std::span<const float> logits, const SamplerConfig& config, double uniform);

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_TRAIN_SAMPLER_H_
