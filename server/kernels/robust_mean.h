// Combinations of several workers' deltas that one wrong worker cannot carry away: the coordinate-wise median, and the
// mean of what is left when the largest and the smallest values of each coordinate are cut off.
//
// For every coordinate, with v_1 <= ... <= v_n the values in ascending order, all in fp32:
//
//   median   n odd: the middle one;  n even: 0.5 (v_{n/2} + v_{n/2+1})
//   trimmed  (((v_{k+1} + v_{k+2}) + ...) + v_{n-k}) * (1 / (n - 2k)),  k = floor(trim_share n), less where nothing
//            would be left
//
// The ascending order fixes the order of the sum: the result depends neither on the order of the workers nor on
// threads. Every worker has one vote, whatever its share.
#ifndef AUTOLOCO_SERVER_KERNELS_ROBUST_MEAN_H_
#define AUTOLOCO_SERVER_KERNELS_ROBUST_MEAN_H_

#include <cstddef>
#include <span>
#include <vector>

namespace autoloco::server {

enum class Combining { kMean, kMedian, kTrimmedMean };

struct CombineRule {
  Combining kind = Combining::kMean;
  double trim_share = 0.2;  // kTrimmedMean: cut off at either end; from 0 to below 0.5
};

// k of `count` values; 2 k < count.
std::size_t TrimmedAtEachEnd(double trim_share, std::size_t count);

// Combines the first `count` values of every row into `result`. The rows are used up: they hold the values in another
// order afterwards. No value may be NaN, none -0 (which compares equal to 0 but is other bits).
// REQUIRES: rule.kind != kMean; rows is not empty; rows and result hold `count` values and do not overlap.
void CombineRows(const CombineRule& rule, std::vector<std::vector<float>>* rows, std::size_t count, float* result);

// The same for one coordinate, by a plain sort: the reference.
float CombineValues(const CombineRule& rule, std::vector<float> values);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_KERNELS_ROBUST_MEAN_H_
