#include "tests/bench/learning/report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/learning/presets.h"

namespace autoloco::bench {
namespace {

using nlohmann::json;

constexpr char kFixedSameRounds[] = "fixed, autoloco's rounds";

Estimate EstimateOf(const std::vector<double>& values) {
  Estimate estimate;
  const double count = static_cast<double>(values.size());
  for (const double value : values) estimate.mean += value / count;
  if (values.size() < 2 || !std::isfinite(estimate.mean)) return estimate;
  double squares = 0;
  for (const double value : values) squares += (value - estimate.mean) * (value - estimate.mean);
  estimate.error = std::sqrt(squares / (count - 1) / count);
  return estimate;
}

const ArmResults* Find(const std::vector<ArmResults>& results, const Arm& like, const std::string& method) {
  for (const ArmResults& other : results) {
    if (other.arm.method == method && IsExact(other.arm) && SameSetting(other.arm, like)) return &other;
  }
  return nullptr;
}

// Loss minus the other's with the same seed; empty: no such method, or it is the method itself.
std::optional<Estimate> PairedDifference(const ArmResults& line, const ArmResults* other) {
  if (other == nullptr || other == &line) return std::nullopt;
  std::vector<double> differences;
  for (std::size_t i = 0; i < std::min(line.runs.size(), other->runs.size()); ++i) {
    differences.push_back(line.runs[i].loss - other->runs[i].loss);
  }
  const Estimate estimate = EstimateOf(differences);
  return std::isfinite(estimate.mean) ? std::optional<Estimate>(estimate) : std::nullopt;
}

std::optional<double> RelativeDifference(const ArmResults& line, const ArmResults* other) {
  if (other == nullptr || other == &line) return std::nullopt;
  double own = 0;
  double reference = 0;
  for (std::size_t i = 0; i < std::min(line.runs.size(), other->runs.size()); ++i) {
    own += line.runs[i].loss;
    reference += other->runs[i].loss;
  }
  return std::isfinite(own) && reference > 0 ? std::optional<double>(own / reference - 1) : std::nullopt;
}

std::string ShowEstimate(const std::optional<Estimate>& estimate) {
  return estimate ? absl::StrFormat("%+.4f +- %.4f", estimate->mean, estimate->error) : "";
}

std::string ShowPercent(const std::optional<double>& part) {
  return part ? absl::StrFormat("%+.2f %%", 100 * *part) : "";
}

std::string ShowRatio(const ReportLine& line) {
  if (line.bytes_per_worker <= 0) return "";
  return absl::StrFormat("1/%.1f", line.data_parallel_bytes / line.bytes_per_worker);
}

json Finite(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json ToJson(const ReportLine& line) {
  json object = {{"method", line.method},
                 {"data", line.data},
                 {"schedule", line.schedule},
                 {"codec", line.codec},
                 {"momentum", line.momentum},
                 {"seeds", line.seeds},
                 {"loss_mean", Finite(line.loss.mean)},
                 {"loss_se", Finite(line.loss.error)},
                 {"rounds", line.rounds},
                 {"bytes_per_worker", line.bytes_per_worker},
                 {"data_parallel_bytes", line.data_parallel_bytes},
                 {"worst_jump", Finite(line.worst_jump)}};
  if (line.to_reference) {
    object["difference_to_reference"] = line.to_reference->mean;
    object["difference_to_reference_se"] = line.to_reference->error;
  }
  if (line.to_rounds) {
    object["difference_at_equal_rounds"] = line.to_rounds->mean;
    object["difference_at_equal_rounds_se"] = line.to_rounds->error;
  }
  if (line.to_exact) object["relative_to_fp32"] = *line.to_exact;
  if (line.to_data_parallel) object["relative_to_data_parallel"] = *line.to_data_parallel;
  return object;
}

}  // namespace

std::vector<ReportLine> MakeReport(const std::vector<ArmResults>& results, double data_parallel_bytes) {
  std::vector<ReportLine> lines;
  for (const ArmResults& result : results) {
    if (result.runs.empty()) continue;
    ReportLine line;
    line.method = result.arm.method;
    line.data = ShardingName(result.arm.data);
    line.schedule = ScheduleName(result.arm.schedule);
    line.codec = CodingName(result.arm);
    line.momentum = result.arm.kind == Method::kOuter ? result.arm.momentum : 0;
    line.seeds = static_cast<std::uint32_t>(result.runs.size());
    line.data_parallel_bytes = data_parallel_bytes;
    line.worst_jump = -std::numeric_limits<double>::infinity();
    std::vector<double> losses;
    for (const RunResult& run : result.runs) {
      losses.push_back(run.loss);
      line.rounds += static_cast<double>(run.rounds) / static_cast<double>(result.runs.size());
      line.bytes_per_worker += run.bytes_per_worker / static_cast<double>(result.runs.size());
      line.worst_jump = std::max(line.worst_jump, run.worst_jump);
    }
    line.loss = EstimateOf(losses);
    line.to_reference = PairedDifference(result, Find(results, result.arm, kReferenceMethod));
    line.to_rounds = PairedDifference(result, Find(results, result.arm, kFixedSameRounds));
    line.to_exact = RelativeDifference(result, Find(results, result.arm, result.arm.method));
    line.to_data_parallel = RelativeDifference(result, Find(results, result.arm, "data-parallel"));
    lines.push_back(line);
  }
  return lines;
}

std::string ReportTable(const std::vector<ReportLine>& lines) {
  std::size_t width = 6;
  std::size_t codec_width = 5;
  for (const ReportLine& line : lines) {
    width = std::max(width, line.method.size());
    codec_width = std::max(codec_width, line.codec.size());
  }
  std::string table;
  std::string group;
  for (const ReportLine& line : lines) {
    const std::string own_group = absl::StrCat(line.data, " data, ", line.schedule, " schedule");
    if (own_group != group) {
      absl::StrAppend(&table, group.empty() ? "" : "\n", own_group, "\n");
      absl::StrAppendFormat(&table, "  %-*s %-*s %-5s %5s %18s %19s %19s %8s %8s %7s %13s %9s %11s\n",
                            static_cast<int>(width), "method", static_cast<int>(codec_width), "codec", "mu", "seeds",
                            "held-out loss", "to diloco", "at equal rounds", "to d.-p.", "to fp32", "rounds",
                            "bytes/worker", "to d.-p.", "worst jump");
      group = own_group;
    }
    absl::StrAppendFormat(
        &table, "  %-*s %-*s %-5s %5d %18s %19s %19s %8s %8s %7.1f %13.0f %9s %+11.4f\n", static_cast<int>(width),
        line.method, static_cast<int>(codec_width), line.codec, line.momentum > 0 ? absl::StrCat(line.momentum) : "",
        line.seeds, absl::StrFormat("%.4f +- %.4f", line.loss.mean, line.loss.error), ShowEstimate(line.to_reference),
        ShowEstimate(line.to_rounds), ShowPercent(line.to_data_parallel), ShowPercent(line.to_exact), line.rounds,
        line.bytes_per_worker, ShowRatio(line), line.worst_jump);
  }
  absl::StrAppend(
      &table,
      "\nheld-out loss: nats a byte, mean over the seeds +- standard error of the mean\n"
      "to diloco, at equal rounds: difference to fixed H_ref and to fixed intervals at autoloco's number of rounds,\n"
      "  mean over pairs of runs with the same seed +- standard error\n"
      "to d.-p.: loss relative to data-parallel; bytes as a part of what data-parallel sends in fp32\n"
      "to fp32: loss relative to the same method with fp32 both ways\n"
      "bytes/worker: sent and received, as encoded; worst jump: largest change of\n"
      "  the held-out loss from one round to the next after the warm-up, of all seeds\n");
  return table;
}

std::string ReportJson(const std::vector<ReportLine>& lines) {
  json list = json::array();
  for (const ReportLine& line : lines) list.push_back(ToJson(line));
  return list.dump(2) + "\n";
}

std::string ReportCsv(const std::vector<ReportLine>& lines) {
  std::string text =
      "method,data,schedule,codec,momentum,seeds,loss_mean,loss_se,rounds,bytes_per_worker,data_parallel_bytes,"
      "worst_jump,difference_to_reference,difference_to_reference_se,difference_at_equal_rounds,"
      "difference_at_equal_rounds_se,relative_to_data_parallel,relative_to_fp32\n";
  const auto pair = [](const std::optional<Estimate>& estimate) {
    return estimate ? absl::StrFormat("%.6f,%.6f", estimate->mean, estimate->error) : std::string(",");
  };
  const auto number = [](const std::optional<double>& value) {
    return value ? absl::StrFormat("%.6f", *value) : std::string();
  };
  for (const ReportLine& line : lines) {
    absl::StrAppendFormat(&text, "\"%s\",%s,%s,%s,%g,%d,%.6f,%.6f,%.2f,%.0f,%.0f,%.6f,%s,%s,%s,%s\n", line.method,
                          line.data, line.schedule, line.codec, line.momentum, line.seeds, line.loss.mean,
                          line.loss.error, line.rounds, line.bytes_per_worker, line.data_parallel_bytes,
                          line.worst_jump, pair(line.to_reference), pair(line.to_rounds), number(line.to_data_parallel),
                          number(line.to_exact));
  }
  return text;
}

}  // namespace autoloco::bench
