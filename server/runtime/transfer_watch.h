// Whether a transfer still moves: fails on lack of progress, never on total time.
#ifndef AUTOLOCO_SERVER_RUNTIME_TRANSFER_WATCH_H_
#define AUTOLOCO_SERVER_RUNTIME_TRANSFER_WATCH_H_

#include <cstdint>

#include "absl/time/time.h"
#include "common/base/clock.h"

namespace autoloco::server {

// Loop thread only.
class TransferWatch {
 public:
  static constexpr std::uint64_t kLeastBytes = 256 * 1024;  // that must move in the stall timeout
  static constexpr absl::Duration kHeardInterval = absl::Seconds(1);

  TransferWatch() = default;
  explicit TransferWatch(Instant now) : started_(now), marked_(now), heard_(now) {}

  // Whether less than `least` bytes moved since `timeout` ago, `moved` being all bytes so far.
  bool Stalled(std::uint64_t moved, Instant now, absl::Duration timeout, std::uint64_t least = kLeastBytes) {
    if (moved - marked_bytes_ >= least) {
      marked_bytes_ = moved;
      marked_ = now;
    }
    return now - marked_ >= timeout;
  }

  // Whether bytes moved that nobody has been told of: true at most once in kHeardInterval.
  bool Heard(std::uint64_t moved, Instant now) {
    if (moved == heard_bytes_ || now - heard_ < kHeardInterval) return false;
    heard_bytes_ = moved;
    heard_ = now;
    return true;
  }

  Instant started() const { return started_; }

 private:
  Instant started_;
  Instant marked_;
  std::uint64_t marked_bytes_ = 0;
  Instant heard_;
  std::uint64_t heard_bytes_ = 0;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_TRANSFER_WATCH_H_
