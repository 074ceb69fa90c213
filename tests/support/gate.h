// A gate where processes of this machine wait for each other and say what they took to get there, for benchmarks that
// time what many processes do together. Over a Unix socket, so that a process that ends is noticed at once.
#ifndef AUTOLOCO_TESTS_SUPPORT_GATE_H_
#define AUTOLOCO_TESTS_SUPPORT_GATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace autoloco::test {

// A visitor's time between two passes, on the monotonic clock, which all processes of a machine share.
struct GateSpan {
  Instant since;  // the gate opened for it the last time; for its first visit: it connected
  Instant until;  // it came
};

// The visitor's side. Not thread-safe.
class Gate {
 public:
  // `path`: as GateKeeper::Listen's. UNAVAILABLE when nobody listens there.
  static absl::StatusOr<std::unique_ptr<Gate>> Connect(const std::string& path);
  ~Gate();

  // Waits until the keeper opens, however long. UNAVAILABLE when the keeper is gone.
  absl::Status Pass();

 private:
  explicit Gate(int descriptor);

  const int descriptor_;
  Instant since_;
};

// The other side: lets everybody through at once. Not thread-safe. Every wait ends with DEADLINE_EXCEEDED after its
// timeout.
class GateKeeper {
 public:
  // `path` must be free, and shorter than a socket's may be (108 bytes).
  static absl::StatusOr<std::unique_ptr<GateKeeper>> Listen(const std::string& path);
  // Visitors' passes fail from now on.
  ~GateKeeper();

  // Waits until `count` visitors have connected.
  absl::Status Admit(std::size_t count, absl::Duration timeout);
  // Waits until every visitor stands at the gate; their spans, in the order in which they connected. UNAVAILABLE as
  // soon as one is gone.
  absl::StatusOr<std::vector<GateSpan>> Gather(absl::Duration timeout);
  // Lets everybody through. REQUIRES: all stand at the gate.
  absl::Status Open();

 private:
  explicit GateKeeper(int listener) : listener_(listener) {}

  const int listener_;
  std::vector<int> visitors_;
};

}  // namespace autoloco::test

#endif  // AUTOLOCO_TESTS_SUPPORT_GATE_H_
