#include "tests/bench/transfer/options.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace autoloco::bench {
namespace {

bool Positive(const std::string& value, std::uint32_t* number) {
  return absl::SimpleAtoi(value, number) && *number > 0;
}

bool List(const std::string& value, std::vector<std::uint32_t>* numbers) {
  numbers->clear();
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(value, ','))) {
    std::uint32_t number = 0;
    if (!absl::SimpleAtoi(part, &number)) return false;
    numbers->push_back(number);
  }
  return true;
}

bool Streams(const std::string& value, std::vector<std::uint32_t>* streams) {
  if (!List(value, streams)) return false;
  for (const std::uint32_t count : *streams) {
    if (count == 0) return false;
  }
  return true;
}

bool Set(const std::string& name, const std::string& value, TransferOptions* options) {
  if (name == "--layers") return Positive(value, &options->layers);
  if (name == "--streams") return Streams(value, &options->streams);
  if (name == "--delays-ms") return List(value, &options->delays_ms);
  if (name == "--repeats") return Positive(value, &options->repeats);
  if (name == "--serve") {
    options->serve = value;
    return value == "grpc" || value == "tcp";
  }
  if (name != "--json") return false;
  options->json = value;
  return !value.empty();
}

}  // namespace

absl::StatusOr<TransferOptions> ParseTransferOptions(const std::vector<std::string>& arguments) {
  TransferOptions options;
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

std::string TransferOptionsHelp() {
  return "Usage: bench_transfer [options]\n"
         "\n"
         "Times pushes and pulls of a real server against the same bytes over bare gRPC and over bare TCP.\n"
         "\n"
         "  --layers N          of the model, 3 million parameters each (default 8)\n"
         "  --streams N,M       connections of a transfer; one row each (default 1,4)\n"
         "  --delays-ms N,M     of the link, each way; one row each (default 0,80)\n"
         "  --repeats N         of every arm, in turn; the median counts (default 5)\n"
         "  --json FILE         the rows as a list of objects\n";
}

}  // namespace autoloco::bench
