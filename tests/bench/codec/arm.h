// One way to code a block of values, ready to be timed: everything that it touches stays in the processor's cache.
#ifndef AUTOLOCO_TESTS_BENCH_CODEC_ARM_H_
#define AUTOLOCO_TESTS_BENCH_CODEC_ARM_H_

#include <functional>
#include <span>
#include <string>

#include "common/codec/codec.h"

namespace autoloco::bench {

struct Arm {
  std::string name;
  double bits_per_value = 0;  // all overheads counted
  double snr_db = 0;
  // Each runs one whole block. What they work on lives in them.
  std::function<void()> encode;
  std::function<void()> encode_with_residual;  // may be empty: the arm has no error feedback
  std::function<void()> decode_add;            // into a weighted sum
  std::function<void()> zstd_encode;           // zstd alone, with the arm's parameters, on the arm's packed symbols
  std::function<void()> zstd_decode;
};

// The product's codec. REQUIRES: kBlockValues values, here and below.
Arm MakeCodecArm(const std::string& name, std::span<const float> values, const Coding& coding);

// What is written first when there is no codec: the largest magnitude of each group of values sets the scale, symbols
// of `bits` (8 or 4) bits, zstd at its level 1. Plain loops, compiled for what the processor has and with -ffast-math.
Arm MakePlainArm(int bits, std::span<const float> values);

}  // namespace autoloco::bench

#endif  // AUTOLOCO_TESTS_BENCH_CODEC_ARM_H_
