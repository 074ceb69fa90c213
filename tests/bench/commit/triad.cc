#include "tests/bench/commit/triad.h"

#include <algorithm>
#include <cstddef>

#include "tests/bench/commit/problem.h"

namespace autoloco::bench {
namespace {

constexpr std::uint64_t kArrayValues = std::uint64_t{1} << 25;  // 128 MiB each
constexpr std::uint64_t kSliceValues = std::uint64_t{1} << 16;
constexpr std::uint64_t kBytesPerValue = 3 * sizeof(float);
constexpr float kFactor = 0.5F;

void Slice(float* __restrict a, const float* __restrict b, const float* __restrict c, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) a[i] = b[i] + kFactor * c[i];
}

}  // namespace

Triad::Triad(WorkPool* pool)
    : pool_(pool), a_(AllocateOrDie(kArrayValues)), b_(AllocateOrDie(kArrayValues)), c_(AllocateOrDie(kArrayValues)) {}

void Triad::Run(std::uint64_t bytes) {
  const std::uint64_t values = bytes / kBytesPerValue;
  pool_->ParallelFor((values + kSliceValues - 1) / kSliceValues, [&](std::size_t slice, std::size_t) {
    const std::uint64_t first = slice * kSliceValues;
    const std::uint64_t begin = first % kArrayValues;
    Slice(a_.values().data() + begin, b_.values().data() + begin, c_.values().data() + begin,
          std::min(kSliceValues, values - first));
  });
}

}  // namespace autoloco::bench
