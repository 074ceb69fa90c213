// The middle of a few numbers: what one wild value cannot move.
#ifndef AUTOLOCO_SERVER_CORE_MEDIAN_H_
#define AUTOLOCO_SERVER_CORE_MEDIAN_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace autoloco::server {

// The mean of the two middle ones where their number is even. REQUIRES: not empty, no NaN.
inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Median distance from `center`. REQUIRES: as above.
inline double MedianDeviation(std::vector<double> values, double center) {
  for (double& value : values) value = std::abs(value - center);
  return Median(std::move(values));
}

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_MEDIAN_H_
