#include "common/tensor/difference.h"

#include <bit>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"

namespace autoloco {
namespace {

constexpr std::uint32_t kExponentMask = 0x7F800000u;  // all ones: infinite or NaN

}  // namespace

bool Subtract(std::span<const float> base, std::span<const float> values, std::span<float> difference) {
  AUTOLOCO_CHECK(base.size() == values.size());
  AUTOLOCO_CHECK(base.size() == difference.size());
  const float* __restrict from = base.data();
  const float* __restrict take = values.data();
  float* __restrict to = difference.data();
  std::uint32_t bad = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    to[i] = from[i] - take[i];
    bad |= (std::bit_cast<std::uint32_t>(to[i]) & kExponentMask) == kExponentMask;
  }
  return bad == 0;
}

}  // namespace autoloco
