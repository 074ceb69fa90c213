// Blocks and values for the tests of the codec.
#ifndef AUTOLOCO_TESTS_UNIT_COMMON_CODEC_CODEC_BLOCKS_H_
#define AUTOLOCO_TESTS_UNIT_COMMON_CODEC_CODEC_BLOCKS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/codec/delta_codec.h"

namespace autoloco::test {

inline std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span<const char>(text)); }

// N(0, 1e-6) values.
std::vector<float> Gaussian(std::size_t count, std::uint64_t seed);

// A block with a right checksum around any header and body.
std::string MakeBlock(std::uint32_t index, std::uint8_t codec, std::uint8_t stored, std::uint16_t zero,
                      const std::string& body);

// One plain zstd frame, as a second implementation would write it.
std::string Compress(const std::string& text);

// The bytes of a block's units.
std::string UnitBytes(const std::vector<float>& units);

// What decoding `payload` as `count` values says; the sum of a DecodeAdd must agree.
absl::Status DecodeStatus(const std::string& payload, std::size_t count, Codec codec);

}  // namespace autoloco::test

#endif  // AUTOLOCO_TESTS_UNIT_COMMON_CODEC_CODEC_BLOCKS_H_
