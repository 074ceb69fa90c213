// Pauses between attempts: they double from 0.2 s up to a cap, and each is drawn from its upper half, so that workers
// that lost the server together do not come back together.
#ifndef AUTOLOCO_WORKER_CORE_BACKOFF_H_
#define AUTOLOCO_WORKER_CORE_BACKOFF_H_

#include <cstdint>

#include "absl/time/time.h"

namespace autoloco::worker {

// Not thread-safe. The same seed, stream and calls give the same pauses.
class Backoff {
 public:
  // `stream` keeps the pauses of several back-offs of one worker apart.
  Backoff(absl::Duration longest, std::uint64_t seed, std::uint64_t stream)
      : longest_(longest), seed_(seed), stream_(stream) {}

  // The pause before the next attempt.
  absl::Duration Next();
  // It worked: start from the shortest pause again.
  void Reset() { attempts_ = 0; }

  static constexpr absl::Duration kShortest = absl::Milliseconds(200);

 private:
  const absl::Duration longest_;
  const std::uint64_t seed_;
  const std::uint64_t stream_;
  std::uint64_t drawn_ = 0;
  int attempts_ = 0;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_CORE_BACKOFF_H_
