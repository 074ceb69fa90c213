#include <algorithm>
#include <cmath>
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
      const float* const v = values_.data() + group * kGroup;
      float largest = 0;
      for (std::size_t i = 0; i < kGroup; ++i) largest = std::max(largest, std::abs(v[i]));
      scales_[group] = largest / static_cast<float>(symbol_max_);
      const float inverse = largest == 0 ? 0 : static_cast<float>(symbol_max_) / largest;
      for (std::size_t i = 0; i < kGroup; ++i) {
        symbols_[group * kGroup + i] = static_cast<std::int8_t>(std::nearbyint(v[i] * inverse));
      }
    }
    for (std::size_t i = 0; i < packed_.size(); ++i) {
      packed_[i] =
          static_cast<std::uint8_t>(nibbles_ ? (symbols_[2 * i] & 15) | symbols_[2 * i + 1] << 4 : symbols_[i]);
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
      for (std::size_t i = group * kGroup; i < (group + 1) * kGroup; ++i) {
        sum_[i] += weight * (static_cast<float>(SymbolAt(i)) * scales_[group]);
      }
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
