// What every arm of the benchmark works on: a round's payloads and the vectors of the run.
#ifndef AUTOLOCO_TESTS_BENCH_COMMIT_PROBLEM_H_
#define AUTOLOCO_TESTS_BENCH_COMMIT_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/flat_buffer.h"
#include "common/base/memory_map.h"
#include "common/base/parallel.h"
#include "common/codec/codec.h"
#include "tests/support/temp_folder.h"

namespace autoloco::bench {

// A round's payloads as the server has them: memory-mapped files.
class Payloads {
 public:
  // Gaussian deltas, written block by block from a seed. Ends the process where the folder for temporary files cannot
  // be written.
  Payloads(std::uint64_t params, std::size_t workers, const Coding& coding, WorkPool* pool);

  std::size_t count() const { return maps_.size(); }
  std::span<const std::byte> payload(std::size_t worker) const { return maps_[worker].bytes(); }
  std::uint64_t bytes() const;

 private:
  TempFolder folder_;
  std::vector<MemoryMap> maps_;
};

// Parameters, momentum and view.
struct RunState {
  // Momentum zero; parameters Gaussian, the same every time; the view a little beside them. Ends the process where the
  // memory cannot be had.
  explicit RunState(std::uint64_t value_count);

  FlatBuffer params;
  FlatBuffer momentum;
  FlatBuffer view;
};

FlatBuffer AllocateOrDie(std::uint64_t value_count);

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_COMMIT_PROBLEM_H_
