// What a delta can be coded as, and how values are cut into blocks. No code of its own: delta_codec.h encodes and
// decodes, README.md writes the format down.
#ifndef AUTOLOCO_COMMON_CODEC_CODEC_H_
#define AUTOLOCO_COMMON_CODEC_CODEC_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace autoloco {

// Part of the wire format: don't change a value. All that a reader needs to know. A range is up to 4,096 neighbouring
// values of a block (quantizer.h).
enum class Codec : std::uint8_t {
  kFp32 = 1,     // lossless
  kBf16 = 2,     // rounded to nearest even; NaN stays NaN
  kInt8 = 3,     // 8-bit symbols, a range's largest magnitude is symbol 127
  kRms8 = 4,     // 8-bit symbols -127 .. 127 times a step that is a multiple of the range's RMS
  kRms4 = 5,     // the same with 4-bit symbols -7 .. 7, two a byte
  kTernary = 6,  // the same with symbols -1, 0, 1, five a byte
};

inline bool IsKnown(Codec codec) { return codec >= Codec::kFp32 && codec <= Codec::kTernary; }
// Whether every value comes back as it was.
inline bool IsLossless(Codec codec) { return codec == Codec::kFp32; }
// Whether values become symbols times units that the block carries: such a block decodes to finite values only.
inline bool IsQuantized(Codec codec) { return codec >= Codec::kInt8 && codec <= Codec::kTernary; }

inline constexpr double kStepMin = 0.05;  // 127 symbols reach 6.35 RMS
inline constexpr double kStepMax = 4;
inline constexpr double kStepDefault = 1.5;  // 1.6 bits a Gaussian value at 7.3 dB

// What a writer needs to know. Plain values; equal codings give equal bytes.
struct Coding {
  Codec codec = Codec::kFp32;
  double step = kStepDefault;  // quantizer step in units of a range's RMS; counts for kRms8, kRms4 and kTernary
  // 1 for the quantized codecs: zstd as a plain Huffman coder (README.md has its parameters); everything else: zstd's
  // own parameters of that level, 1 .. 19.
  int zstd_level = 1;

  bool operator==(const Coding&) const = default;
};

// The packing that suits the step: 8-bit symbols below 0.75, 4-bit below 2.5, ternary from there on. REQUIRES:
// kStepMin <= step <= kStepMax.
inline Codec QuantizedCodec(double step) {
  constexpr double kNibbleStepMin = 0.75;  // 7 symbols reach 5.25 RMS and more
  constexpr double kTernaryStepMin = 2.5;
  if (step < kNibbleStepMin) return Codec::kRms8;
  return step < kTernaryStepMin ? Codec::kRms4 : Codec::kTernary;
}

inline constexpr std::uint64_t kBlockValues = 65536;  // part of the wire format

inline std::uint64_t BlockCount(std::uint64_t value_count) { return (value_count + kBlockValues - 1) / kBlockValues; }
// Values in block `index` of a vector of `value_count`. REQUIRES: index < BlockCount(value_count).
inline std::uint64_t BlockSize(std::uint64_t value_count, std::uint64_t index) {
  const std::uint64_t begin = index * kBlockValues;
  return value_count - begin < kBlockValues ? value_count - begin : kBlockValues;
}

// What came of encoding a block, or, added up, many. The sums of squares are fp64.
struct CodingReport {
  std::uint64_t values = 0;
  std::uint64_t bytes = 0;    // on the wire, headers included
  double squared_signal = 0;  // of what was to be sent: values, plus the residual where there is one
  double squared_error = 0;   // of what was to be sent minus what is decoded; accurate to about 1e-5 of itself

  double bits_per_value() const {
    return values == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(values);
  }
  // Signal-to-noise ratio in decibels; infinite where nothing is lost.
  double snr_db() const { return 10 * std::log10(squared_signal / squared_error); }

  CodingReport& operator+=(const CodingReport& other) {
    values += other.values;
    bytes += other.bytes;
    squared_signal += other.squared_signal;
    squared_error += other.squared_error;
    return *this;
  }
};

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CODEC_CODEC_H_
