// One run of the product: autoloco-server and its workers, all real processes.
#ifndef AUTOLOCO_TESTS_BENCH_ROUND_PRODUCT_RUN_H_
#define AUTOLOCO_TESTS_BENCH_ROUND_PRODUCT_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/round/measurement.h"
#include "tests/bench/round/options.h"

namespace autoloco::bench {

// How deltas and broadcasts are coded under these settings, in words. INVALID_ARGUMENT: the server would not take them.
absl::StatusOr<std::string> CodecInWords(const std::vector<std::string>& server_flags);

// Runs `rounds` rounds and kills everything. Whatever stands in the way is an error that says what the process said.
absl::StatusOr<Measurement> RunProduct(const RoundCase& size, std::uint32_t rounds,
                                       const std::vector<std::string>& server_flags);

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_ROUND_PRODUCT_RUN_H_
