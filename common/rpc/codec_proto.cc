#include "common/rpc/codec_proto.h"

#include "common/base/check.h"

namespace autoloco {
namespace {

Codec CodecNamed(v1::CodecConfig::Delta name, double step) {
  switch (name) {
    case v1::CodecConfig::DELTA_FP32: return Codec::kFp32;
    case v1::CodecConfig::DELTA_BF16: return Codec::kBf16;
    case v1::CodecConfig::DELTA_INT8: return Codec::kInt8;
    case v1::CodecConfig::DELTA_QUANTIZED: return QuantizedCodec(step);
    default: break;
  }
  AUTOLOCO_CHECK(false && "a codec without a name");
  return Codec::kFp32;
}

}  // namespace

Codec ToCodec(const v1::CodecConfig& config) { return CodecNamed(config.delta(), config.step()); }

Coding ToCoding(const v1::CodecConfig& config) {
  return {.codec = ToCodec(config), .step = config.step(), .zstd_level = config.zstd_level()};
}

Coding ToBroadcastCoding(const v1::CodecConfig& config) {
  return {.codec = CodecNamed(config.broadcast(), config.broadcast_step()),
          .step = config.broadcast_step(),
          .zstd_level = config.zstd_level()};
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
