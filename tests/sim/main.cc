// autoloco-sim: runs seeded scenarios of the deterministic simulation.
//
//   autoloco-sim --seeds N [--first SEED] [--plant-bug NAME] [--json FILE] [--trace SEED]
//
// Exit code 0: no violation; with --plant-bug: one was found. 1 otherwise, 2 for wrong usage.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/sim/batch.h"
#include "tests/sim/bugs.h"
#include "tests/sim/cluster.h"

namespace autoloco::sim {
namespace {

struct Arguments {
  std::uint64_t seeds = 1;
  std::uint64_t first = 1;
  Bug bug = Bug::kNone;
  std::string json;
  std::optional<std::uint64_t> trace;
};

int Usage(const std::string& problem) {
  std::fprintf(stderr, "autoloco-sim: %s\n", problem.c_str());
  std::fprintf(stderr, "usage: autoloco-sim --seeds N [--first SEED] [--plant-bug NAME] [--json FILE] [--trace SEED]\n");
  std::fprintf(stderr, "bugs:");
  for (const Bug bug : AllBugs()) std::fprintf(stderr, " %s", BugName(bug));
  std::fprintf(stderr, "\n");
  return 2;
}

// Empty: understood.
std::string Parse(int argc, char** argv, Arguments* arguments) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) return absl::StrCat("no value for ", name);
    const std::string value = argv[i + 1];
    std::uint64_t number = 0;
    const bool is_number = absl::SimpleAtoi(value, &number);
    if (name == "--seeds" && is_number && number > 0) {
      arguments->seeds = number;
    } else if (name == "--first" && is_number) {
      arguments->first = number;
    } else if (name == "--trace" && is_number) {
      arguments->trace = number;
    } else if (name == "--json") {
      arguments->json = value;
    } else if (name == "--plant-bug") {
      const std::optional<Bug> bug = BugFromName(value);
      if (!bug) return absl::StrCat("no such bug: ", value);
      arguments->bug = *bug;
    } else {
      return absl::StrCat("do not understand ", name, " ", value);
    }
  }
  return "";
}

int RunTrace(std::uint64_t seed, Bug bug) {
  const Result result = RunSeed(seed, bug, stdout);
  for (const std::string& violation : result.violations) std::printf("violation: %s\n", violation.c_str());
  std::printf("seed %llu: %s, version %llu, digest %s, trace %016llx\n", static_cast<unsigned long long>(seed),
              result.violations.empty() ? "well" : "VIOLATION", static_cast<unsigned long long>(result.version),
              result.final_digest.c_str(), static_cast<unsigned long long>(result.trace_hash));
  return result.violations.empty() == (bug == Bug::kNone) ? 0 : 1;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  const std::string problem = Parse(argc, argv, &arguments);
  if (!problem.empty()) return Usage(problem);
  if (arguments.trace) return RunTrace(*arguments.trace, arguments.bug);
  const auto start = std::chrono::steady_clock::now();
  BatchResult batch = RunBatch({arguments.first, arguments.seeds, arguments.bug});
  batch.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::string json = ToJson(batch);
  std::printf("%s\n", json.c_str());
  for (const std::string& violation : batch.first_violations) std::fprintf(stderr, "%s\n", violation.c_str());
  if (!arguments.json.empty()) {
    std::FILE* file = std::fopen(arguments.json.c_str(), "w");
    if (file == nullptr) return Usage(absl::StrCat("cannot write ", arguments.json));
    std::fprintf(file, "%s\n", json.c_str());
    if (std::fclose(file) != 0) return Usage(absl::StrCat("cannot write ", arguments.json));
  }
  return (batch.violations == 0) == (arguments.bug == Bug::kNone) ? 0 : 1;
}

}  // namespace
}  // namespace autoloco::sim

int main(int argc, char** argv) { return autoloco::sim::Main(argc, argv); }
