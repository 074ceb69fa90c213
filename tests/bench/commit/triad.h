// The yardstick: a[i] = b[i] + s c[i] over arrays beyond every cache, as in the STREAM benchmark.
#ifndef AUTOLOCO_TESTS_BENCH_COMMIT_TRIAD_H_
#define AUTOLOCO_TESTS_BENCH_COMMIT_TRIAD_H_

#include <cstdint>

#include "common/base/flat_buffer.h"
#include "common/base/parallel.h"

namespace autoloco::bench {

class Triad {
 public:
  // Borrows the pool.
  explicit Triad(WorkPool* pool);

  // Moves `bytes` (two thirds read, one third written; what the processor fetches to write is not counted).
  void Run(std::uint64_t bytes);

 private:
  WorkPool* const pool_;
  FlatBuffer a_;
  FlatBuffer b_;
  FlatBuffer c_;
};

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_COMMIT_TRIAD_H_
