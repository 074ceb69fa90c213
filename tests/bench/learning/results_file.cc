#include "tests/bench/learning/results_file.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace autoloco::bench {
namespace {

using nlohmann::json;

// JSON has no infinity: a diverged run's numbers are null.
json Number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

double Read(const json& value) {
  return value.is_null() ? std::numeric_limits<double>::infinity() : value.get<double>();
}

std::string ToLine(const std::string& run, const RunResult& result) {
  return json{{"run", run},
              {"loss", Number(result.loss)},
              {"rounds", result.rounds},
              {"bytes_per_worker", result.bytes_per_worker},
              {"worst_jump", Number(result.worst_jump)},
              {"seconds", result.seconds},
              {"intervals", result.intervals},
              {"losses", result.losses}}
      .dump();
}

// Empty: not a result.
std::optional<std::pair<std::string, RunResult>> FromLine(const std::string& line) {
  try {
    const json object = json::parse(line);
    RunResult result;
    result.loss = Read(object.at("loss"));
    result.rounds = object.at("rounds").get<std::uint64_t>();
    result.bytes_per_worker = object.at("bytes_per_worker").get<double>();
    result.worst_jump = Read(object.at("worst_jump"));
    result.seconds = object.at("seconds").get<double>();
    result.intervals = object.at("intervals").get<std::vector<std::uint32_t>>();
    for (const json& loss : object.at("losses")) result.losses.push_back(static_cast<float>(Read(loss)));
    return std::make_pair(object.at("run").get<std::string>(), result);
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

absl::Status ResultsFile::Open(const std::string& path) {
  const MutexLock lock(&mutex_);
  path_ = path;
  std::ifstream old(path);
  std::string line;
  std::uintmax_t whole_bytes = 0;  // of the lines that are complete
  bool cut_off = false;
  for (int number = 1; std::getline(old, line); ++number) {
    cut_off = old.eof();  // no end of line
    if (cut_off) break;
    const auto entry = FromLine(line);
    if (!entry) return absl::InvalidArgumentError(absl::StrCat(path, ":", number, ": want a result of this program"));
    results_.insert(*entry);
    whole_bytes += line.size() + 1;
  }
  old.close();
  std::error_code error;
  if (cut_off) std::filesystem::resize_file(path, whole_bytes, error);
  file_.open(path, std::ios::app);
  if (error || !file_) return absl::InvalidArgumentError(absl::StrCat("cannot open ", path, " to append results"));
  return absl::OkStatus();
}

const RunResult* ResultsFile::Find(const std::string& run) const {
  const MutexLock lock(&mutex_);
  const auto found = results_.find(run);
  return found == results_.end() ? nullptr : &found->second;
}

absl::Status ResultsFile::Add(const std::string& run, const RunResult& result) {
  const MutexLock lock(&mutex_);
  if (!results_.emplace(run, result).second || !file_.is_open()) return absl::OkStatus();
  file_ << ToLine(run, result) << std::endl;  // flushed: a run takes a minute
  if (!file_) return absl::UnavailableError(absl::StrCat("cannot write to ", path_));
  return absl::OkStatus();
}

}  // namespace autoloco::bench
