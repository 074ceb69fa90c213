#include "worker/train/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "common/base/check.h"

namespace autoloco::worker {

std::size_t SampleToken(std::span<const float> logits, const SamplerConfig& config, double uniform) {
  AUTOLOCO_CHECK(!logits.empty());
  const auto likelier = [&](std::size_t a, std::size_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  std::vector<std::size_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), std::size_t{0});
  const auto best = std::min_element(tokens.begin(), tokens.end(), likelier);
  if (config.temperature == 0) return *best;
  const double highest = logits[*best];
  if (config.top_k > 0 && config.top_k < tokens.size()) {
    std::nth_element(tokens.begin(), tokens.begin() + config.top_k, tokens.end(), likelier);
    tokens.resize(config.top_k);
    std::sort(tokens.begin(), tokens.end());
  }
  std::vector<double> cumulative(tokens.size());
  double sum = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    sum += std::exp((logits[tokens[i]] - highest) / config.temperature);
    cumulative[i] = sum;
  }
  const auto drawn = std::upper_bound(cumulative.begin(), cumulative.end(), uniform * sum);
  return tokens[std::min<std::size_t>(static_cast<std::size_t>(drawn - cumulative.begin()), tokens.size() - 1)];
}

}  // namespace autoloco::worker
