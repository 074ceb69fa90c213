#include "common/tensor/finite.h"

#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace autoloco {
namespace {

constexpr std::uint32_t kExponentMask = 0x7F800000u;  // all ones: infinite or NaN

}  // namespace

bool AllFinite(std::span<const float> values) {
  std::uint32_t bad = 0;  // no early exit: the loop stays free of branches, and bad values are rare
  for (const float value : values) bad |= (std::bit_cast<std::uint32_t>(value) & kExponentMask) == kExponentMask;
  return bad == 0;
}

absl::Status CheckFinite(std::span<const float> values, const Layout& layout, std::uint64_t first_index) {
  AUTOLOCO_CHECK(first_index <= layout.value_count());
  AUTOLOCO_CHECK(values.size() <= layout.value_count() - first_index);
  if (AllFinite(values)) return absl::OkStatus();
  std::size_t i = 0;
  while (std::isfinite(values[i])) ++i;
  const TensorEntry& tensor = layout.TensorAt(first_index + i);
  return absl::InvalidArgumentError(
      absl::StrCat("tensor ", tensor.spec.name, ": value ", first_index + i - tensor.offset, " is ", values[i]));
}

}  // namespace autoloco
