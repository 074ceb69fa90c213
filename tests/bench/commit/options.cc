#include "tests/bench/commit/options.h"

#include "common/base/status_macros.h"
#include "tests/support/option_table.h"

namespace autoloco::bench {

absl::StatusOr<CommitOptions> ParseCommitOptions(const std::vector<std::string>& arguments) {
  CommitOptions options;
  AUTOLOCO_RETURN_IF_ERROR(test::ReadOptions(
      arguments,
      {.valued = {{"--params", test::WholeNumber(&options.params)},
                  {"--workers", test::WholeNumbers(&options.workers)},
                  {"--threads", test::WholeNumber(&options.threads)},
                  {"--repeats", test::WholeNumber(&options.repeats)},
                  {"--step", test::RealNumber(&options.step, 0.75, 2.5)},  // the LibTorch arms' 4-bit symbols
                  {"--json", test::Text(&options.json)}},
       .switches = {{"--help", &options.help}, {"-h", &options.help}}}));
  return options;
}

std::string CommitOptionsHelp() {
  return "Usage: bench_commit [options]\n"
         "\n"
         "Times the round commit against the same step in LibTorch operations and against a triad over as many bytes.\n"
         "\n"
         "  --params N       parameters, rounded up to whole blocks (default 100000000)\n"
         "  --workers N,M    contributions; one row each (default 8)\n"
         "  --threads N      of every arm (default 2)\n"
         "  --repeats N      of every arm, in turn; the best one counts (default 5)\n"
         "  --step C         quantizer step, both ways, 0.75 to below 2.5 (default 1.5)\n"
         "  --json FILE      the rows as a list of objects\n";
}

}  // namespace autoloco::bench
