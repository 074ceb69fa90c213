#include "tests/bench/learning/evaluation.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace autoloco::bench {
namespace {

constexpr std::uint64_t kWindowsAtOnce = 128;

}  // namespace

absl::StatusOr<double> MeanLoss(std::span<const std::int32_t> windows, std::uint32_t context, StackedEngine* engine) {
  const std::uint64_t columns = std::uint64_t{context} + 1;
  const std::uint64_t models = engine->models();
  const std::uint64_t count = windows.size() / columns / models * models;
  AUTOLOCO_CHECK(count > 0);
  const std::uint64_t chunk = std::max<std::uint64_t>(kWindowsAtOnce / models, 1) * models;
  double sum = 0;
  for (std::uint64_t begin = 0; begin < count; begin += chunk) {
    const std::uint64_t size = std::min(chunk, count - begin);
    AUTOLOCO_ASSIGN_OR_RETURN(const double part, engine->LossSum(windows.subspan(begin * columns, size * columns)));
    sum += part;
  }
  return sum / static_cast<double>(count * context);
}

}  // namespace autoloco::bench
