#include "common/rpc/codec_proto.h"

#include "gtest/gtest.h"

namespace autoloco {
namespace {

v1::CodecConfig Config(v1::CodecConfig::Delta delta, double step) {
  v1::CodecConfig config;
  config.set_delta(delta);
  config.set_step(step);
  config.set_zstd_level(3);
  return config;
}

// The other direction has settings of its own.
v1::CodecConfig BroadcastConfig(v1::CodecConfig::Delta broadcast, double step) {
  v1::CodecConfig config = Config(v1::CodecConfig::DELTA_INT8, 2);
  config.set_broadcast(broadcast);
  config.set_broadcast_step(step);
  return config;
}

TEST(CodecProtoTest, EverySettingIsACodingAndBack) {
  const struct {
    v1::CodecConfig::Delta delta;
    double step;
    Codec codec;
  } cases[] = {
      {v1::CodecConfig::DELTA_FP32, 1.5, Codec::kFp32},      {v1::CodecConfig::DELTA_BF16, 1.5, Codec::kBf16},
      {v1::CodecConfig::DELTA_INT8, 1.5, Codec::kInt8},      {v1::CodecConfig::DELTA_QUANTIZED, 0.5, Codec::kRms8},
      {v1::CodecConfig::DELTA_QUANTIZED, 1.5, Codec::kRms4}, {v1::CodecConfig::DELTA_QUANTIZED, 3, Codec::kTernary}};
  for (const auto& c : cases) {
    EXPECT_EQ(ToCoding(Config(c.delta, c.step)), (Coding{.codec = c.codec, .step = c.step, .zstd_level = 3}));
    EXPECT_EQ(ToCodec(Config(c.delta, c.step)), c.codec);
    EXPECT_EQ(ToBroadcastCoding(BroadcastConfig(c.delta, c.step)),
              (Coding{.codec = c.codec, .step = c.step, .zstd_level = 3}));
    EXPECT_EQ(ToProto(c.codec), c.delta);
  }
}

// The range of the setting is that of the encoder.
TEST(CodecProtoTest, StepsOfTheSettingAreStepsOfTheCodec) {
  for (const char* name : {"step", "broadcast_step"}) {
    const auto* field = v1::CodecConfig::descriptor()->FindFieldByName(name);
    const auto& setting = field->options().GetExtension(v1::setting);
    EXPECT_EQ(setting.min(), kStepMin);
    EXPECT_EQ(setting.max(), kStepMax);
    EXPECT_EQ(std::stod(setting.default_()), kStepDefault);
  }
}

}  // namespace
}  // namespace autoloco
