#include "tests/bench/round/options.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/bench/round/model_shape.h"
#include "tests/support/option_table.h"

namespace autoloco::bench {
namespace {

constexpr std::uint64_t kManyWorkersParamsMax = 10'000'000;  // of the models that are run with 32 workers by default

// What the options say of the cases; an empty list stands for the default.
struct CaseLists {
  std::vector<std::uint64_t> params;
  std::vector<std::uint32_t> workers;
};

absl::StatusOr<std::vector<RoundCase>> CasesOf(CaseLists lists) {
  if (lists.params.empty()) lists.params = {1'000'000, 10'000'000, 67'000'000, 100'000'000};
  std::vector<RoundCase> cases;
  for (const std::uint64_t params : lists.params) {
    if (params < kParamsMin || params > kParamsMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("--params: want ", kParamsMin, " to ", kParamsMax, ", got ", params));
    }
    std::vector<std::uint32_t> workers = lists.workers;
    if (workers.empty()) workers = {2, 8};
    if (lists.workers.empty() && params <= kManyWorkersParamsMax) workers.push_back(32);
    for (const std::uint32_t count : workers) cases.push_back({params, count});
  }
  return cases;
}

}  // namespace

absl::StatusOr<RoundOptions> ParseRoundOptions(const std::vector<std::string>& arguments) {
  RoundOptions options;
  CaseLists lists;
  AUTOLOCO_RETURN_IF_ERROR(test::ReadOptions(arguments, {.valued = {{"--params", test::WholeNumbers(&lists.params)},
                                                                    {"--workers", test::WholeNumbers(&lists.workers)},
                                                                    {"--rounds", test::WholeNumber(&options.rounds, 2)},
                                                                    {"--baseline", test::Text(&options.baseline)},
                                                                    {"--pairs", test::WholeNumber(&options.pairs)},
                                                                    {"--json", test::Text(&options.json)}},
                                                         .switches = {{"--help", &options.help}, {"-h", &options.help}},
                                                         .other = [&options](const std::string& argument) {
                                                           options.server_flags.push_back(argument);
                                                           return absl::OkStatus();
                                                         }}));
  AUTOLOCO_ASSIGN_OR_RETURN(options.cases, CasesOf(std::move(lists)));
  return options;
}

std::string RoundOptionsHelp() {
  return "Usage: bench_round [options] [settings of autoloco-server]\n"
         "\n"
         "Times whole rounds of a real server and real workers, from the first worker's encoding to the last worker's\n"
         "check of the new parameters, beside another server's if there is one.\n"
         "\n"
         "  --params N,M        sizes of the model (default 1000000,10000000,67000000,100000000)\n"
         "  --workers K,L       numbers of workers (default 2,8, and 32 for models up to 10000000)\n"
         "  --rounds R          rounds of a run, at least 2; the first one does not count (default 5)\n"
         "  --baseline COMMAND  shell command, run with --params, --workers, --rounds and --json added\n"
         "  --pairs P           with a baseline: runs of either, in turn (default 5)\n"
         "  --json FILE         the rows as a list of objects\n"
         "\n"
         "Everything else goes to the server as it is: --codec.delta quantized --codec.step 1\n";
}

}  // namespace autoloco::bench
