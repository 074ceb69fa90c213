// What one run of a case gave, or several: ours or the baseline's.
#ifndef AUTOLOCO_TESTS_BENCH_ROUND_MEASUREMENT_H_
#define AUTOLOCO_TESTS_BENCH_ROUND_MEASUREMENT_H_

#include <vector>

namespace autoloco::bench {

struct Measurement {
  double round_seconds = 0;  // median over the rounds
  double bytes_up = 0;       // payload bytes, a worker and round
  double bytes_down = 0;
  double server_cpu_seconds = 0;  // a round; 0: not known
  double server_peak_rss_bytes = 0;
};

// The middle one, or the mean of the two in the middle. REQUIRES: not empty.
double Median(std::vector<double> values);

// Field by field. REQUIRES: not empty.
Measurement MedianOf(const std::vector<Measurement>& runs);

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_ROUND_MEASUREMENT_H_
