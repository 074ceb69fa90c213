#include "tests/bench/learning/options.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/bench/learning/custom_arm.h"
#include "tests/support/option_table.h"

namespace autoloco::bench {
namespace {

test::OptionSetter OneMore(std::vector<std::string>* texts) {
  return [texts](const std::string& value) {
    texts->push_back(value);
    return true;
  };
}

}  // namespace

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  AUTOLOCO_RETURN_IF_ERROR(test::ReadOptions(
      arguments, {.valued = {{"--preset", test::Text(&options.preset)},
                             {"--arms", test::Text(&options.arms)},
                             {"--arm", OneMore(&options.custom_arms)},
                             {"--seeds", test::WholeNumber(&options.seeds)},
                             {"--steps", test::WholeNumber(&options.steps)},
                             {"--rows", test::WholeNumber(&options.rows)},
                             {"--momentum", test::RealNumber(&options.momentum, 0, 1)},
                             {"--threads", test::WholeNumber(&options.threads)},
                             {"--results", test::Text(&options.results)},
                             {"--json", test::Text(&options.json)},
                             {"--csv", test::Text(&options.csv)},
                             {"--svg", test::Text(&options.svg)}},
                  .switches = {{"--help", &options.help}, {"-h", &options.help}, {"--list", &options.list}},
                  .other = [&options](const std::string& argument) {
                    if (argument.rfind("-", 0) == 0) return test::UnknownOption(argument);
                    if (!options.text.empty())
                      return absl::InvalidArgumentError(absl::StrCat("want one text, got also ", argument));
                    options.text = argument;
                    return absl::OkStatus();
                  }}));
  return options;
}

std::string OptionsHelp() {
  return "Usage: bench_learning [TEXT] [options]\n"
         "\n"
         "Trains a small decoder on real text with data-parallel AdamW, DiLoCo, AutoLoCo and their variants, on the "
         "same\n"
         "tokens, and prints one table. TEXT is a file or a folder; default: the dictionary that deploy/dictionary.sh\n"
         "brings.\n"
         "\n"
         "  --preset NAME    smoke (seconds), small (default, the main arms) or claim (every arm)\n"
         "  --arms REGEX     only arms whose 'method, data, schedule, codec' match, and what they need\n"
         "  --arm 'NAME: KEY=VALUE ...'    one more arm, may be given several times; without --arms only such:\n" +
         CustomArmHelp() +
         "  --list           show the arms of the preset and stop\n"
         "  --seeds N        runs of each arm\n"
         "  --steps N        inner steps of each run\n"
         "  --rows N         sequences a worker and step\n"
         "  --momentum MU    outer momentum of all arms, instead of the best of the sweep\n"
         "  --threads N      runs at once, one thread each (default 2)\n"
         "  --results FILE   finished runs: read and appended, so that an interrupted benchmark goes on\n"
         "  --json FILE  --csv FILE  --svg FILE    the report in other forms\n";
}

}  // namespace autoloco::bench
