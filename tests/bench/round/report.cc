#include "tests/bench/round/report.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"

namespace autoloco::bench {
namespace {

constexpr double kMegabyte = 1e6;

Ratios RatiosOf(const Measurement& ours, const Measurement& baseline) {
  return {.time = ours.round_seconds / baseline.round_seconds,
          .memory = ours.server_peak_rss_bytes / baseline.server_peak_rss_bytes,
          .bytes = (ours.bytes_up + ours.bytes_down) / (baseline.bytes_up + baseline.bytes_down)};
}

Ratios MedianOf(const std::vector<Ratios>& pairs) {
  std::vector<double> time, memory, bytes;
  for (const Ratios& pair : pairs) {
    time.push_back(pair.time);
    memory.push_back(pair.memory);
    bytes.push_back(pair.bytes);
  }
  return {.time = Median(std::move(time)), .memory = Median(std::move(memory)), .bytes = Median(std::move(bytes))};
}

nlohmann::json ToJson(const RoundRow& row) {
  nlohmann::json object = {{"params", row.params},
                           {"workers", row.workers},
                           {"codec", row.codec},
                           {"round_seconds", row.ours.round_seconds},
                           {"bytes_up", row.ours.bytes_up},
                           {"bytes_down", row.ours.bytes_down},
                           {"server_cpu_seconds", row.ours.server_cpu_seconds},
                           {"server_peak_rss_bytes", row.ours.server_peak_rss_bytes}};
  if (!row.baseline.has_value()) return object;
  object["baseline_round_seconds"] = row.baseline->round_seconds;
  object["baseline_bytes_up"] = row.baseline->bytes_up;
  object["baseline_bytes_down"] = row.baseline->bytes_down;
  object["baseline_server_peak_rss_bytes"] = row.baseline->server_peak_rss_bytes;
  object["time_ratio"] = row.ratios->time;
  object["memory_ratio"] = row.ratios->memory;
  object["bytes_ratio"] = row.ratios->bytes;
  return object;
}

}  // namespace

RoundRow MakeRow(std::uint64_t params, std::uint32_t workers, const std::string& codec,
                 const std::vector<Measurement>& ours, const std::vector<Measurement>& baseline) {
  RoundRow row{
      .params = params, .workers = workers, .codec = codec, .ours = MedianOf(ours), .baseline = {}, .ratios = {}};
  if (baseline.empty()) return row;
  AUTOLOCO_CHECK(baseline.size() == ours.size());
  std::vector<Ratios> pairs;
  for (std::size_t i = 0; i < ours.size(); ++i) pairs.push_back(RatiosOf(ours[i], baseline[i]));
  row.baseline = MedianOf(baseline);
  row.ratios = MedianOf(pairs);
  return row;
}

std::string RoundTable(const std::vector<RoundRow>& rows) {
  std::string table =
      absl::StrFormat("%11s %7s %8s %8s %8s %9s %9s   %8s %9s   %6s %6s %6s\n", "params", "workers", "round s", "cpu s",
                      "rss MB", "up MB", "down MB", "base s", "rss MB", "time", "memory", "bytes");
  for (const RoundRow& row : rows) {
    absl::StrAppendFormat(&table, "%11d %7d %8.3f %8.3f %8.0f %9.3f %9.3f", row.params, row.workers,
                          row.ours.round_seconds, row.ours.server_cpu_seconds,
                          row.ours.server_peak_rss_bytes / kMegabyte, row.ours.bytes_up / kMegabyte,
                          row.ours.bytes_down / kMegabyte);
    if (row.baseline.has_value()) {
      absl::StrAppendFormat(&table, "   %8.3f %9.0f   %6.3f %6.3f %6.4f", row.baseline->round_seconds,
                            row.baseline->server_peak_rss_bytes / kMegabyte, row.ratios->time, row.ratios->memory,
                            row.ratios->bytes);
    }
    table += "\n";
  }
  if (!rows.empty()) absl::StrAppend(&table, "coding: ", rows[0].codec, "; ratios: ours over the baseline's\n");
  return table;
}

std::string RoundJson(const std::vector<RoundRow>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const RoundRow& row : rows) list.push_back(ToJson(row));
  return list.dump(2) + "\n";
}

}  // namespace autoloco::bench
