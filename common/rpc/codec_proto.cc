#include "common/rpc/codec_proto.h"

#include "common/base/check.h"

namespace autoloco {

Codec ToCodec(const v1::CodecConfig& config) {
  switch (config.delta()) {
    case v1::CodecConfig::DELTA_FP32: return Codec::kFp32;
    case v1::CodecConfig::DELTA_BF16: return Codec::kBf16;
    case v1::CodecConfig::DELTA_INT8: return Codec::kInt8;
    case v1::CodecConfig::DELTA_QUANTIZED: return QuantizedCodec(config.step());
    default: break;
  }
  AUTOLOCO_CHECK(false && "a codec without a name");
  return Codec::kFp32;
}

Coding ToCoding(const v1::CodecConfig& config) {
  return {.codec = ToCodec(config), .step = config.step(), .zstd_level = config.zstd_level()};
}

v1::CodecConfig::Delta ToProto(Codec codec) {
  switch (codec) {
    case Codec::kFp32: return v1::CodecConfig::DELTA_FP32;
    case Codec::kBf16: return v1::CodecConfig::DELTA_BF16;
    case Codec::kInt8: return v1::CodecConfig::DELTA_INT8;
    case Codec::kRms8:
    case Codec::kRms4:
    case Codec::kTernary: return v1::CodecConfig::DELTA_QUANTIZED;
  }
  AUTOLOCO_CHECK(false && "an unknown codec");
  return v1::CodecConfig::DELTA_UNSPECIFIED;
}

}  // namespace autoloco
