// Finds values that are not finite, and says in whose tensor they lie.
#ifndef AUTOLOCO_COMMON_TENSOR_FINITE_H_
#define AUTOLOCO_COMMON_TENSOR_FINITE_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "common/tensor/layout.h"

namespace autoloco {

// Whether no value is NaN or infinite. Runs at the speed of memory.
bool AllFinite(std::span<const float> values);

// INVALID_ARGUMENT naming the first non-finite value: "tensor model.norm.weight: value 17 is nan" (17 counts within the
// tensor, row-major). `values` are those from `first_index` on of a flat vector of this layout.
// REQUIRES: first_index + values.size() <= layout.value_count().
absl::Status CheckFinite(std::span<const float> values, const Layout& layout, std::uint64_t first_index);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_TENSOR_FINITE_H_
