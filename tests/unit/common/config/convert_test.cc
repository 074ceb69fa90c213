#include "common/config/convert.h"

#include <gtest/gtest.h>

namespace autoloco {
namespace {

TEST(ConvertTest, DecoderShapeHasEveryNumber) {
  v1::ModelConfig model;
  model.set_vocab_size(1);
  model.set_width(2);
  model.set_layers(3);
  model.set_heads(4);
  model.set_kv_heads(5);
  model.set_mlp_hidden(6);
  model.set_context(7);
  model.set_tied_head(false);
  model.set_rope_theta(8.5);
  model.set_norm_epsilon(9.5);
  const DecoderShape want = {.vocab_size = 1,
                             .width = 2,
                             .layers = 3,
                             .heads = 4,
                             .kv_heads = 5,
                             .mlp_hidden = 6,
                             .context = 7,
                             .tied_head = false,
                             .rope_theta = 8.5,
                             .norm_epsilon = 9.5};
  EXPECT_EQ(ToDecoderShape(model), want);
}

TEST(ConvertTest, LogLevels) {
  EXPECT_EQ(ToLogLevel(v1::LOG_LEVEL_DEBUG), LogLevel::kDebug);
  EXPECT_EQ(ToLogLevel(v1::LOG_LEVEL_INFO), LogLevel::kInfo);
  EXPECT_EQ(ToLogLevel(v1::LOG_LEVEL_WARNING), LogLevel::kWarning);
  EXPECT_EQ(ToLogLevel(v1::LOG_LEVEL_ERROR), LogLevel::kError);
}

TEST(ConvertTest, LogFormats) {
  EXPECT_EQ(ToLogFormat(v1::LOG_FORMAT_TEXT), LogFormat::kText);
  EXPECT_EQ(ToLogFormat(v1::LOG_FORMAT_JSON), LogFormat::kJson);
}

}  // namespace
}  // namespace autoloco
