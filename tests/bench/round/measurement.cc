#include "tests/bench/round/measurement.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace autoloco::bench {
namespace {

double MedianField(const std::vector<Measurement>& runs, double Measurement::*field) {
  std::vector<double> values;
  for (const Measurement& run : runs) values.push_back(run.*field);
  return Median(std::move(values));
}

}  // namespace

double Median(std::vector<double> values) {
  AUTOLOCO_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

Measurement MedianOf(const std::vector<Measurement>& runs) {
  return {.round_seconds = MedianField(runs, &Measurement::round_seconds),
          .bytes_up = MedianField(runs, &Measurement::bytes_up),
          .bytes_down = MedianField(runs, &Measurement::bytes_down),
          .server_cpu_seconds = MedianField(runs, &Measurement::server_cpu_seconds),
          .server_peak_rss_bytes = MedianField(runs, &Measurement::server_peak_rss_bytes)};
}

}  // namespace autoloco::bench
