// The results as one table: text for people, JSON and CSV for programs, a plot.
#ifndef AUTOLOCO_TESTS_BENCH_LEARNING_REPORT_H_
#define AUTOLOCO_TESTS_BENCH_LEARNING_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/learning/runner.h"

namespace autoloco::bench {

// Mean and its standard error.
struct Estimate {
  double mean = 0;
  double error = 0;  // 0 where there is one value only
};

struct ReportLine {
  std::string method;
  std::string data;
  std::string schedule;
  std::string codec;
  double momentum = 0;  // outer; 0: the method has none
  std::uint32_t seeds = 0;
  Estimate loss;                // held out, nats a token; infinite: a run diverged
  double rounds = 0;            // mean
  double bytes_per_worker = 0;  // mean; 0: nothing is sent
  double data_parallel_bytes = 0;
  double worst_jump = 0;                   // of all seeds
  std::optional<Estimate> to_reference;    // loss minus that of fixed H_ref with the same seed
  std::optional<Estimate> to_rounds;       // loss minus that of fixed intervals at AutoLoCo's rounds, same seed
  std::optional<double> to_exact;          // relative difference to the same method with fp32 in both directions
  std::optional<double> to_data_parallel;  // relative difference of the mean losses over the common seeds
};

std::vector<ReportLine> MakeReport(const std::vector<ArmResults>& results, double data_parallel_bytes);

std::string ReportTable(const std::vector<ReportLine>& lines);
std::string ReportJson(const std::vector<ReportLine>& lines);
std::string ReportCsv(const std::vector<ReportLine>& lines);
// Held-out loss against rounds, one panel for each data and schedule.
std::string ReportSvg(const std::vector<ReportLine>& lines);

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_LEARNING_REPORT_H_
