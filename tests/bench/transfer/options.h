// Command line of bench_transfer.
#ifndef AUTOLOCO_TESTS_BENCH_TRANSFER_OPTIONS_H_
#define AUTOLOCO_TESTS_BENCH_TRANSFER_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace autoloco::bench {

struct TransferOptions {
  bool help = false;
  std::string serve;                            // internal: be the bare server of this kind, "grpc" or "tcp"
  std::uint32_t layers = 8;                     // of the model: 3 million parameters each
  std::vector<std::uint32_t> streams = {1, 4};  // one row each
  std::vector<std::uint32_t> delays_ms = {0, 80};
  std::uint32_t repeats = 5;  // of each arm, in turn; the median counts
  std::string json;           // empty: none
};

// INVALID_ARGUMENT names the option.
absl::StatusOr<TransferOptions> ParseTransferOptions(const std::vector<std::string>& arguments);

std::string TransferOptionsHelp();

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_TRANSFER_OPTIONS_H_
