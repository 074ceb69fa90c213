#include "tests/bench/transfer/options.h"

#include "common/base/status_macros.h"
#include "tests/support/option_table.h"

namespace autoloco::bench {
namespace {

test::OptionSetter Server(std::string* kind) {
  return [kind](const std::string& value) {
    *kind = value;
    return value == "grpc" || value == "tcp";
  };
}

}  // namespace

absl::StatusOr<TransferOptions> ParseTransferOptions(const std::vector<std::string>& arguments) {
  TransferOptions options;
  AUTOLOCO_RETURN_IF_ERROR(
      test::ReadOptions(arguments, {.valued = {{"--layers", test::WholeNumber(&options.layers)},
                                               {"--streams", test::WholeNumbers(&options.streams)},
                                               {"--delays-ms", test::WholeNumbers(&options.delays_ms, 0)},
                                               {"--repeats", test::WholeNumber(&options.repeats)},
                                               {"--serve", Server(&options.serve)},
                                               {"--json", test::Text(&options.json)}},
                                    .switches = {{"--help", &options.help}, {"-h", &options.help}}}));
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
