// storm: kill -9 of workers and server by the clock, and what becomes of the run (tests/e2e/README.md).
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/file.h"
#include "common/config/load.h"
#include "tests/e2e/storm_options.h"
#include "tests/e2e/storm_report.h"
#include "tests/e2e/storm_run.h"

namespace autoloco::test {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

int Run(const std::vector<std::string>& arguments) {
  const absl::StatusOr<StormOptions> options = ParseStormOptions(arguments);
  if (!options.ok()) {
    std::fprintf(stderr, "storm: %s\n", std::string(options.status().message()).c_str());
    return kExitUsage;
  }
  if (options->help) {
    std::printf("%s", StormUsage().c_str());
    return 0;
  }
  const absl::StatusOr<StormResults> results = Storm(*options).Run();
  if (!results.ok()) {
    std::fprintf(stderr, "storm: %s\n", std::string(results.status().message()).c_str());
    return kExitFailed;
  }
  const StormVerdict verdict = Judge(*results, options->bounds);
  for (const std::string& line : verdict.lines) std::printf("%s\n", line.c_str());
  if (!options->json.empty()) {
    const absl::Status written = WriteFileAtomically(options->json, StormJson(*options, *results, verdict.passed));
    if (!written.ok()) {
      std::fprintf(stderr, "storm: %s\n", std::string(written.message()).c_str());
      return kExitFailed;
    }
  }
  return verdict.passed ? 0 : kExitFailed;
}

}  // namespace
}  // namespace autoloco::test

int main(int argc, char** argv) { return autoloco::test::Run(autoloco::ProgramArguments(argc, argv)); }
