// One way to move bytes between two processes.
#ifndef AUTOLOCO_TESTS_BENCH_TRANSFER_ARM_H_
#define AUTOLOCO_TESTS_BENCH_TRANSFER_ARM_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"

namespace autoloco::bench {

struct Moved {
  std::uint64_t bytes = 0;
  double seconds = 0;  // from the first byte to the answer, or to the last byte's arrival
};

// Keeps its connections from one transfer to the next.
class Arm {
 public:
  virtual ~Arm() = default;
  virtual absl::StatusOr<Moved> Push() = 0;
  virtual absl::StatusOr<Moved> Pull() = 0;
};

// Part `index` of `parts` about equal ones of [0, size): first byte and number of bytes.
inline std::pair<std::size_t, std::size_t> PartOf(std::size_t size, std::size_t index, std::size_t parts) {
  const std::size_t first = size * index / parts;
  return {first, size * (index + 1) / parts - first};
}

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_TRANSFER_ARM_H_
