#include "worker/core/backoff.h"

#include <algorithm>

#include "common/base/random.h"

namespace autoloco::worker {

absl::Duration Backoff::Next() {
  constexpr int kDoublingsMax = 20;
  const absl::Duration grown = kShortest * (std::int64_t{1} << std::min(attempts_, kDoublingsMax));
  const double share = 0.5 + 0.5 * RandomStream(seed_, stream_).Uniform(drawn_);
  ++attempts_;
  ++drawn_;
  return std::min(grown, longest_) * share;
}

}  // namespace autoloco::worker
