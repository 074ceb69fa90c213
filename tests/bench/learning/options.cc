#include "tests/bench/learning/options.h"

#include <cmath>
#include <functional>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/bench/learning/custom_arm.h"

namespace autoloco::bench {
namespace {

using Setter = std::function<bool(const std::string& value)>;

template <typename Number>
Setter PositiveNumber(Number* number) {
  return [number](const std::string& value) { return absl::SimpleAtoi(value, number) && *number > 0; };
}

template <typename Number>
Setter PositiveNumber(std::optional<Number>* number) {
  return [number](const std::string& value) {
    Number parsed = 0;
    if (!absl::SimpleAtoi(value, &parsed) || parsed == 0) return false;
    *number = parsed;
    return true;
  };
}

Setter Text(std::string* text) {
  return [text](const std::string& value) {
    *text = value;
    return !value.empty();
  };
}

Setter OneMore(std::vector<std::string>* texts) {
  return [texts](const std::string& value) {
    texts->push_back(value);
    return true;
  };
}

Setter Momentum(std::optional<double>* momentum) {
  return [momentum](const std::string& value) {
    double parsed = 0;
    if (!absl::SimpleAtod(value, &parsed) || !(parsed >= 0 && parsed < 1)) return false;
    *momentum = parsed;
    return true;
  };
}

}  // namespace

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  const std::map<std::string, Setter> setters = {{"--preset", Text(&options.preset)},
                                                 {"--arms", Text(&options.arms)},
                                                 {"--arm", OneMore(&options.custom_arms)},
                                                 {"--seeds", PositiveNumber(&options.seeds)},
                                                 {"--steps", PositiveNumber(&options.steps)},
                                                 {"--rows", PositiveNumber(&options.rows)},
                                                 {"--momentum", Momentum(&options.momentum)},
                                                 {"--threads", PositiveNumber(&options.threads)},
                                                 {"--results", Text(&options.results)},
                                                 {"--json", Text(&options.json)},
                                                 {"--csv", Text(&options.csv)},
                                                 {"--svg", Text(&options.svg)}};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      options.help = true;
    } else if (argument == "--list") {
      options.list = true;
    } else if (argument.rfind("-", 0) != 0) {
      if (!options.text.empty()) return absl::InvalidArgumentError(absl::StrCat("want one text, got also ", argument));
      options.text = argument;
    } else {
      const std::size_t equals = argument.find('=');
      const std::string name = argument.substr(0, equals);
      const auto setter = setters.find(name);
      if (setter == setters.end()) return absl::InvalidArgumentError(absl::StrCat("unknown option ", name));
      if (equals == std::string::npos && i + 1 == arguments.size()) {
        return absl::InvalidArgumentError(absl::StrCat(name, " needs a value"));
      }
      const std::string value = equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
      if (!setter->second(value)) return absl::InvalidArgumentError(absl::StrCat(name, ": cannot use '", value, "'"));
    }
  }
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
