// bench_learning: how well the methods learn for what they send. main() only: options -> arms -> runs -> report.
#include <malloc.h>
#include <regex.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/bench/learning/custom_arm.h"
#include "tests/bench/learning/options.h"
#include "tests/bench/learning/presets.h"
#include "tests/bench/learning/report.h"
#include "tests/bench/learning/results_file.h"
#include "tests/bench/learning/runner.h"
#include "tests/bench/learning/simulation.h"
#include "tests/bench/learning/training_text.h"

namespace autoloco::bench {
namespace {

// Where deploy/dictionary.sh puts its text.
std::string DictionaryPath() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string folder = variable("AUTOLOCO_CACHE_DIR");
  if (folder.empty() && !variable("XDG_CACHE_HOME").empty()) folder = variable("XDG_CACHE_HOME") + "/autoloco";
  if (folder.empty()) folder = variable("HOME") + "/.cache/autoloco";
  return folder + "/gcide.txt";
}

std::string NameOf(const Arm& arm) {
  return absl::StrCat(arm.method, ", ", ShardingName(arm.data), ", ", ScheduleName(arm.schedule), ", ",
                      CodingName(arm));
}

// The preset's arms that match.
absl::StatusOr<std::vector<Arm>> MatchingArms(const Options& options, const std::vector<Arm>& arms) {
  std::vector<Arm> selected;
  regex_t pattern;  // POSIX: g++ 12 warns about std::regex where sanitizers are on
  if (regcomp(&pattern, options.arms.c_str(), REG_EXTENDED | REG_NOSUB) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--arms: '", options.arms, "' is no extended regular expression"));
  }
  for (const Arm& arm : arms) {
    if (regexec(&pattern, NameOf(arm).c_str(), 0, nullptr, 0) == 0) selected.push_back(arm);
  }
  regfree(&pattern);
  if (selected.empty()) return absl::InvalidArgumentError(absl::StrCat("--arms: no arm matches '", options.arms, "'"));
  return selected;
}

absl::StatusOr<std::vector<Arm>> SelectArms(const Options& options, std::vector<Arm> arms) {
  std::vector<Arm> custom;
  for (const std::string& text : options.custom_arms) {
    AUTOLOCO_ASSIGN_OR_RETURN(const Arm arm, ParseCustomArm(text));
    custom.push_back(arm);
  }
  for (std::vector<Arm>* some : {&arms, &custom}) {
    for (Arm& arm : *some) {
      if (options.momentum && arm.momentum == kTuned) arm.momentum = *options.momentum;
    }
  }
  if (options.arms.empty() && custom.empty()) return arms;
  std::vector<Arm> selected;
  if (!options.arms.empty()) {
    AUTOLOCO_ASSIGN_OR_RETURN(selected, MatchingArms(options, arms));
  }
  selected.insert(selected.end(), custom.begin(), custom.end());
  return WithNeededArms(selected, arms);
}

absl::Status WriteText(const std::string& path, const std::string& text) {
  if (path.empty()) return absl::OkStatus();
  std::ofstream file(path);
  file << text;
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("cannot write ", path));
}

absl::Status Run(const Options& options) {
  AUTOLOCO_ASSIGN_OR_RETURN(Preset preset, MakePreset(options.preset));
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<Arm> arms, SelectArms(options, preset.arms));
  if (options.list) {
    for (const Arm& arm : arms) std::printf("%s\n", NameOf(arm).c_str());
    return absl::OkStatus();
  }
  BenchSettings& settings = preset.settings;
  if (options.steps) settings.steps = *options.steps;
  if (options.rows) settings.rows = *options.rows;
  if (settings.warmup_steps * 2 > settings.steps) {
    return absl::InvalidArgumentError(absl::StrCat("--steps: want at least ", settings.warmup_steps * 2));
  }
  const std::string path = options.text.empty() ? DictionaryPath() : options.text;
  AUTOLOCO_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingText> text, TrainingText::Open({path}));
  settings.text = absl::StrCat(absl::Hex(text->fingerprint()));
  BenchData data{text.get(), text->HeldOut(settings.round_windows), text->HeldOut(settings.final_windows)};
  ResultsFile results;
  if (!options.results.empty()) AUTOLOCO_RETURN_IF_ERROR(results.Open(options.results));

  const RunnerOptions runner{settings, options.seeds.value_or(preset.seeds), options.threads};
  std::fprintf(stderr, "%zu arms, up to %u seeds, %llu inner steps, %u workers, %s (%.1f MB), %u threads\n",
               arms.size(), runner.seeds, static_cast<unsigned long long>(settings.steps), text->config().workers,
               path.c_str(), static_cast<double>(text->byte_count()) / 1e6, runner.threads);
  AUTOLOCO_ASSIGN_OR_RETURN(const std::vector<ArmResults> finished, RunArms(runner, data, arms, &results));
  AUTOLOCO_ASSIGN_OR_RETURN(const Layout layout, MakeDecoderLayout(BenchShape(text->config().context)));
  const std::vector<ReportLine> report = MakeReport(finished, DataParallelBytes(settings, layout.value_count()));
  std::printf("%s", ReportTable(report).c_str());
  AUTOLOCO_RETURN_IF_ERROR(WriteText(options.json, ReportJson(report)));
  AUTOLOCO_RETURN_IF_ERROR(WriteText(options.csv, ReportCsv(report)));
  return WriteText(options.svg, ReportSvg(report));
}

}  // namespace
}  // namespace autoloco::bench

int main(int argc, char** argv) {
  // Every step allocates and frees the same few megabytes: keep them instead of giving them back to the kernel.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const absl::StatusOr<autoloco::bench::Options> options = autoloco::bench::ParseOptions(arguments);
  if (options.ok() && options->help) {
    std::printf("%s", autoloco::bench::OptionsHelp().c_str());
    return 0;
  }
  const absl::Status status = options.ok() ? autoloco::bench::Run(*options) : options.status();
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench_learning: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? 2 : 1;
}
