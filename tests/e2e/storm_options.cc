#include "tests/e2e/storm_options.h"

#include <map>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "server/ctl/flag_reader.h"

namespace autoloco::test {
namespace {

constexpr std::uint64_t kVictimStream = 1;

struct NumberFlag {
  double least;
  double most;
  double value;
};

}  // namespace

absl::StatusOr<StormOptions> ParseStormOptions(std::span<const std::string> arguments) {
  StormOptions options;
  std::map<std::string, NumberFlag> numbers = {{"workers", {1, 256, static_cast<double>(options.workers)}},
                                               {"minutes", {0.05, 10000, options.minutes}},
                                               {"seed", {0, 1e15, static_cast<double>(options.seed)}},
                                               {"server-every", {0, 1e6, static_cast<double>(options.server_every)}},
                                               {"step-ms", {1, 60000, static_cast<double>(options.step_ms)}},
                                               {"committed-min", {0, 1, options.bounds.committed_share_min}},
                                               {"participation-min", {0, 1, options.bounds.participation_min}},
                                               {"restart-max", {0, 3600, options.bounds.restart_seconds_max}},
                                               {"memory-growth-max", {1, 100, options.bounds.memory_growth_max}}};
  std::map<std::string, std::string> texts;
  server::FlagReader reader;
  for (const auto& [name, number] : numbers) reader.Text(name, &texts[name]);
  reader.Text("json", &options.json);
  reader.Switch("help", &options.help);
  AUTOLOCO_RETURN_IF_ERROR(reader.Parse(arguments));
  for (auto& [name, number] : numbers) {
    const std::string& text = texts[name];
    if (text.empty()) continue;
    if (!absl::SimpleAtod(text, &number.value) || number.value < number.least || number.value > number.most) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, ": expected a number from ", number.least, " to ", number.most, ", found ", text));
    }
  }
  options.workers = static_cast<std::uint32_t>(numbers["workers"].value);
  options.minutes = numbers["minutes"].value;
  options.seed = static_cast<std::uint64_t>(numbers["seed"].value);
  options.server_every = static_cast<std::uint32_t>(numbers["server-every"].value);
  options.step_ms = static_cast<std::uint32_t>(numbers["step-ms"].value);
  options.bounds.committed_share_min = numbers["committed-min"].value;
  options.bounds.participation_min = numbers["participation-min"].value;
  options.bounds.restart_seconds_max = numbers["restart-max"].value;
  options.bounds.memory_growth_max = numbers["memory-growth-max"].value;
  return options;
}

std::string StormUsage() {
  return "Usage: storm [--workers N] [--minutes M] [--json FILE] [--seed S]\n\n"
         "A real server and N workers without LibTorch; one process is killed every 3 s and started again 1 s "
         "later.\n\n"
         "  --workers N            16\n"
         "  --minutes M            3, counted from the first round\n"
         "  --json FILE            writes the results there\n"
         "  --seed S               1; whom the kills hit\n"
         "  --server-every K       10; every K-th kill is the server; 0: never\n"
         "  --step-ms T            500; least time of an inner step, four of which make an interval\n"
         "  --committed-min X      0.97 of the rounds opened commit\n"
         "  --participation-min X  0.9 of the workers alive when a round opens contribute, on average\n"
         "  --restart-max S        10 s from a worker's restart to its first accepted delta, median\n"
         "  --memory-growth-max X  1.25 times the server's memory of the first third, in the last\n\n"
         "Exit codes: 0 all bounds hold, 1 one does not, 2 wrong usage.\n";
}

int StormVictim(const StormOptions& options, std::uint64_t kill) {
  if (options.server_every > 0 && (kill + 1) % options.server_every == 0) return -1;
  return static_cast<int>(RandomStream(options.seed, kVictimStream).Uniform(kill) * options.workers);
}

}  // namespace autoloco::test
