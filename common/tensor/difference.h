// The delta of an interval, in one pass over memory.
#ifndef AUTOLOCO_COMMON_TENSOR_DIFFERENCE_H_
#define AUTOLOCO_COMMON_TENSOR_DIFFERENCE_H_

#include <span>

namespace autoloco {

// values[i] = base[i] - values[i], fp32, rounded. Returns whether all of them are finite. REQUIRES: spans of one size
// that do not overlap.
bool SubtractFrom(std::span<const float> base, std::span<float> values);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_TENSOR_DIFFERENCE_H_
