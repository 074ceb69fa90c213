// The delta of an interval.
#ifndef AUTOLOCO_COMMON_TENSOR_DIFFERENCE_H_
#define AUTOLOCO_COMMON_TENSOR_DIFFERENCE_H_

#include <span>

namespace autoloco {

// difference[i] = base[i] - values[i], fp32, rounded. Returns whether all of them are finite. REQUIRES: spans of one size
// that do not overlap.
bool Subtract(std::span<const float> base, std::span<const float> values, std::span<float> difference);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_TENSOR_DIFFERENCE_H_
