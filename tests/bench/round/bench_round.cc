// bench_round: whole rounds of real processes, beside another server's. README.md beside it says what is measured.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/config/load.h"
#include "tests/bench/round/baseline_run.h"
#include "tests/bench/round/model_shape.h"
#include "tests/bench/round/options.h"
#include "tests/bench/round/product_run.h"
#include "tests/bench/round/report.h"

namespace autoloco::bench {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

// Every run of a case, ours and the baseline's in turn.
absl::StatusOr<RoundRow> Measure(const RoundOptions& options, const RoundCase& size, const std::string& codec) {
  AUTOLOCO_ASSIGN_OR_RETURN(const Layout layout, MakeDecoderLayout(ShapeOfSize(size.params)));
  const std::uint64_t params = layout.value_count();
  const std::uint32_t runs = options.baseline.empty() ? 1 : options.pairs;
  std::vector<Measurement> ours;
  std::vector<Measurement> baseline;
  for (std::uint32_t run = 1; run <= runs; ++run) {
    absl::PrintF("%d parameters, %d workers, run %d of %d:", params, size.workers, run, runs);
    std::fflush(stdout);
    AUTOLOCO_ASSIGN_OR_RETURN(const Measurement own, RunProduct(size, options.rounds, options.server_flags));
    ours.push_back(own);
    absl::PrintF(" %.3f s", own.round_seconds);
    std::fflush(stdout);
    if (!options.baseline.empty()) {
      AUTOLOCO_ASSIGN_OR_RETURN(const Measurement other,
                                RunBaseline(options.baseline, params, size.workers, options.rounds));
      baseline.push_back(other);
      absl::PrintF(", baseline %.3f s", other.round_seconds);
    }
    absl::PrintF("\n");
  }
  return MakeRow(params, size.workers, codec, ours, baseline);
}

absl::Status MeasureAll(const RoundOptions& options) {
  AUTOLOCO_ASSIGN_OR_RETURN(const std::string codec, CodecInWords(options.server_flags));
  std::vector<RoundRow> rows;
  for (const RoundCase& size : options.cases) {
    AUTOLOCO_ASSIGN_OR_RETURN(RoundRow row, Measure(options, size, codec));
    rows.push_back(std::move(row));
    // What is there is kept, whatever becomes of the cases that follow.
    if (!options.json.empty()) AUTOLOCO_RETURN_IF_ERROR(WriteFileAtomically(options.json, RoundJson(rows)));
  }
  std::printf("%s", RoundTable(rows).c_str());
  return absl::OkStatus();
}

int Main(const std::vector<std::string>& arguments) {
  const absl::StatusOr<RoundOptions> options = ParseRoundOptions(arguments);
  if (!options.ok() || options->help) {
    if (!options.ok()) std::fprintf(stderr, "bench_round: %s\n", std::string(options.status().message()).c_str());
    std::fputs(RoundOptionsHelp().c_str(), options.ok() ? stdout : stderr);
    return options.ok() ? 0 : kExitUsage;
  }
  const absl::Status status = MeasureAll(*options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "\nbench_round: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? kExitUsage : kExitFailed;
}

}  // namespace
}  // namespace autoloco::bench

int main(int argc, char** argv) { return autoloco::bench::Main(autoloco::ProgramArguments(argc, argv)); }
