#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "tests/bench/codec/arm.h"
#include "zstd.h"

namespace autoloco::bench {
namespace {

constexpr int kZstdLevel = 1;
constexpr std::size_t kGroup = 4096;  // values that share a scale

// What a compiler makes of plain loops when it may use what the processor has and need not care for the order of sums.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define AUTOLOCO_BENCH_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define AUTOLOCO_BENCH_CLONES
#endif

AUTOLOCO_BENCH_CLONES float MaxAbs(const float* v) {
  float largest = 0;
  for (std::size_t i = 0; i < kGroup; ++i) largest = std::max(largest, std::abs(v[i]));
  return largest;
}

AUTOLOCO_BENCH_CLONES void ToSymbols(const float* __restrict v, float inverse, std::int8_t* __restrict symbols) {
  for (std::size_t i = 0; i < kGroup; ++i) symbols[i] = static_cast<std::int8_t>(std::nearbyint(v[i] * inverse));
}

AUTOLOCO_BENCH_CLONES void PackNibbles(const std::int8_t* __restrict symbols, std::size_t bytes,
                                       std::uint8_t* __restrict packed) {
  for (std::size_t i = 0; i < bytes; ++i) {
    packed[i] = static_cast<std::uint8_t>((symbols[2 * i] & 15) | symbols[2 * i + 1] << 4);
  }
}

AUTOLOCO_BENCH_CLONES void AddBytes(const std::uint8_t* __restrict packed, float scale, float* __restrict sum) {
  for (std::size_t i = 0; i < kGroup; ++i) sum[i] += scale * static_cast<float>(static_cast<std::int8_t>(packed[i]));
}

AUTOLOCO_BENCH_CLONES void AddNibbles(const std::uint8_t* __restrict packed, float scale, float* __restrict sum) {
  for (std::size_t i = 0; i < kGroup / 2; ++i) {
    sum[2 * i] += scale * static_cast<float>(static_cast<int>((packed[i] & 15U) ^ 8U) - 8);
    sum[2 * i + 1] += scale * static_cast<float>(static_cast<int>((packed[i] >> 4U) ^ 8U) - 8);
  }
}

class PlainPipeline {
 public:
  PlainPipeline(int bits, std::span<const float> values)
      : nibbles_(bits == 4),
        symbol_max_(bits == 4 ? 7 : 127),
        values_(values.begin(), values.end()),
        symbols_(values.size()),
        packed_(values.size() * static_cast<std::size_t>(bits) / 8),
        scales_(values.size() / kGroup),
        frame_(ZSTD_compressBound(packed_.size())),
        sum_(values.size()) {
    AUTOLOCO_CHECK(values.size() % kGroup == 0);
  }
  ~PlainPipeline() {
    ZSTD_freeCCtx(compressor_);
    ZSTD_freeDCtx(decompressor_);
  }
  PlainPipeline(const PlainPipeline&) = delete;
  PlainPipeline& operator=(const PlainPipeline&) = delete;

  void Encode() {
    for (std::size_t group = 0; group < scales_.size(); ++group) {
      const float largest = MaxAbs(values_.data() + group * kGroup);
      scales_[group] = largest / static_cast<float>(symbol_max_);
      const float inverse = largest == 0 ? 0 : static_cast<float>(symbol_max_) / largest;
      ToSymbols(values_.data() + group * kGroup, inverse, symbols_.data() + group * kGroup);
    }
    if (nibbles_) {
      PackNibbles(symbols_.data(), packed_.size(), packed_.data());
    } else {
      std::memcpy(packed_.data(), symbols_.data(), packed_.size());
    }
    Compress();
  }
  void Compress() {
    frame_bytes_ =
        ZSTD_compressCCtx(compressor_, frame_.data(), frame_.size(), packed_.data(), packed_.size(), kZstdLevel);
    AUTOLOCO_CHECK(ZSTD_isError(frame_bytes_) == 0);
  }
  void Decompress() {
    AUTOLOCO_CHECK(ZSTD_decompressDCtx(decompressor_, packed_.data(), packed_.size(), frame_.data(), frame_bytes_) ==
                   packed_.size());
  }
  void DecodeAdd(float weight) {
    Decompress();
    for (std::size_t group = 0; group < scales_.size(); ++group) {
      const float scale = weight * scales_[group];
      float* const sum = sum_.data() + group * kGroup;
      nibbles_ ? AddNibbles(packed_.data() + group * kGroup / 2, scale, sum)
               : AddBytes(packed_.data() + group * kGroup, scale, sum);
    }
  }

  double BitsPerValue() const {
    return 8.0 * static_cast<double>(frame_bytes_ + scales_.size() * sizeof(float)) /
           static_cast<double>(values_.size());
  }
  double SnrDb() const {
    double signal = 0;
    double error = 0;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const double decoded = static_cast<double>(SymbolAt(i)) * scales_[i / kGroup];
      signal += static_cast<double>(values_[i]) * values_[i];
      error += (values_[i] - decoded) * (values_[i] - decoded);
    }
    return 10 * std::log10(signal / error);
  }

 private:
  int SymbolAt(std::size_t i) const {
    if (!nibbles_) return static_cast<std::int8_t>(packed_[i]);
    const unsigned nibble = i % 2 == 0 ? packed_[i / 2] & 15U : packed_[i / 2] >> 4U;
    return static_cast<int>(nibble ^ 8U) - 8;
  }

  bool nibbles_;
  int symbol_max_;
  std::vector<float> values_;
  std::vector<std::int8_t> symbols_;
  std::vector<std::uint8_t> packed_;
  std::vector<float> scales_;
  std::vector<std::byte> frame_;
  std::size_t frame_bytes_ = 0;
  std::vector<float> sum_;
  ZSTD_CCtx* compressor_ = ZSTD_createCCtx();
  ZSTD_DCtx* decompressor_ = ZSTD_createDCtx();
};

}  // namespace

Arm MakePlainArm(int bits, std::span<const float> values) {
  const auto pipeline = std::make_shared<PlainPipeline>(bits, values);
  pipeline->Encode();
  Arm arm;
  arm.name = absl::StrCat("plain int", bits, " absmax + zstd");
  arm.bits_per_value = pipeline->BitsPerValue();
  arm.snr_db = pipeline->SnrDb();
  arm.encode = [pipeline] { pipeline->Encode(); };
  arm.decode_add = [pipeline] { pipeline->DecodeAdd(0.125F); };
  arm.zstd_encode = [pipeline] { pipeline->Compress(); };
  arm.zstd_decode = [pipeline] { pipeline->Decompress(); };
  return arm;
}

}  // namespace autoloco::bench
