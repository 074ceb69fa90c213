// A decoder of about so many parameters, as flags of the server. What it looks like is of no importance here: rounds
// work on the flat vector.
#ifndef AUTOLOCO_TESTS_BENCH_ROUND_MODEL_SHAPE_H_
#define AUTOLOCO_TESTS_BENCH_ROUND_MODEL_SHAPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/tensor/decoder.h"

namespace autoloco::bench {

// What one layer of the narrow decoder can hold.
inline constexpr std::uint64_t kParamsMin = 100'000;
inline constexpr std::uint64_t kParamsMax = 200'000'000;

// The shape whose number of parameters is nearest to `params`, less than 100 away. REQUIRES: within the limits.
DecoderShape ShapeOfSize(std::uint64_t params);

// The same as settings.
std::vector<std::string> ShapeFlags(const DecoderShape& shape);

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_ROUND_MODEL_SHAPE_H_
