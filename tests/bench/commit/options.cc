#include "tests/bench/commit/options.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace autoloco::bench {
namespace {

template <typename Number>
bool Positive(const std::string& value, Number* number) {
  return absl::SimpleAtoi(value, number) && *number > 0;
}

bool Workers(const std::string& value, std::vector<std::uint32_t>* workers) {
  workers->clear();
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(value, ','))) {
    std::uint32_t count = 0;
    if (!Positive(part, &count)) return false;
    workers->push_back(count);
  }
  return true;
}

// The LibTorch arms know the 4-bit symbols only.
bool Step(const std::string& value, double* step) {
  return absl::SimpleAtod(value, step) && *step >= 0.75 && *step < 2.5;
}

bool Set(const std::string& name, const std::string& value, CommitOptions* options) {
  if (name == "--params") return Positive(value, &options->params);
  if (name == "--workers") return Workers(value, &options->workers);
  if (name == "--threads") return Positive(value, &options->threads);
  if (name == "--repeats") return Positive(value, &options->repeats);
  if (name == "--step") return Step(value, &options->step);
  if (name != "--json") return false;
  options->json = value;
  return !value.empty();
}

}  // namespace

absl::StatusOr<CommitOptions> ParseCommitOptions(const std::vector<std::string>& arguments) {
  CommitOptions options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--help" || arguments[i] == "-h") {
      options.help = true;
      continue;
    }
    if (i + 1 == arguments.size()) return absl::InvalidArgumentError(absl::StrCat(arguments[i], " needs a value"));
    if (!Set(arguments[i], arguments[i + 1], &options)) {
      return absl::InvalidArgumentError(absl::StrCat("cannot use ", arguments[i], " ", arguments[i + 1]));
    }
    ++i;
  }
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
