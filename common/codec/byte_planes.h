// fp32 and bf16 bodies: the bytes of a block's values regrouped by significance, least significant first. Exponents,
// which resemble each other, so stand together and compress; the low fraction bytes are noise.
#ifndef AUTOLOCO_COMMON_CODEC_BYTE_PLANES_H_
#define AUTOLOCO_COMMON_CODEC_BYTE_PLANES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/codec/codec.h"

namespace autoloco {

// Bytes a value takes: 4 or 2. REQUIRES: fp32 or bf16, here and below.
constexpr std::size_t PlaneCount(Codec codec) { return codec == Codec::kFp32 ? 4 : 2; }

// Nearest bf16, ties to even. A NaN stays one: its quiet bit is set, so that cutting its fraction cannot give infinity.
std::uint16_t ToBf16(float value);
// What a reader makes of `value`: itself, or the nearest bf16.
float Decoded(float value, Codec codec);
// out[i] = -Decoded(values[i]). The spans do not overlap.
void DecodedNegated(std::span<const float> values, Codec codec, std::span<float> out);

// Plane k holds byte k, least significant first, of every value. `planes`: values.size() * PlaneCount(codec) bytes.
void SplitPlanes(std::span<const float> values, Codec codec, std::uint8_t* planes);
void JoinPlanes(const std::uint8_t* planes, Codec codec, std::span<float> values);
// Sum of squares in fp64, in 16 partial sums (value i in sum i mod 16) that are added up in order.
double SquaredPlanes(const std::uint8_t* planes, Codec codec, std::size_t count);
// sum[i] = sum[i] + weight * value i, each operation rounded.
void AddPlanes(const std::uint8_t* planes, Codec codec, float weight, std::span<float> sum);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CODEC_BYTE_PLANES_H_
