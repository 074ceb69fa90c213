#include "common/config/convert.h"

#include <gtest/gtest.h>

#include <utility>

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

TEST(ConvertTest, ScheduleHasEveryNumber) {
  v1::RunConfig run;
  run.set_total_inner_steps(1000);
  run.mutable_inner()->set_learning_rate(2e-3);
  run.mutable_inner()->set_warmup_steps(30);
  run.mutable_inner()->set_final_ratio(0.2);
  run.mutable_inner()->set_decay_fraction(0.4);
  for (const auto& [proto, schedule] : {std::pair{v1::InnerConfig::SCHEDULE_CONSTANT, Schedule::kConstant},
                                        {v1::InnerConfig::SCHEDULE_COSINE, Schedule::kCosine},
                                        {v1::InnerConfig::SCHEDULE_WSD, Schedule::kWsd}}) {
    run.mutable_inner()->set_schedule(proto);
    const ScheduleConfig config = ToScheduleConfig(run);
    EXPECT_EQ(config.schedule, schedule);
    EXPECT_EQ(config.learning_rate, 2e-3);
    EXPECT_EQ(config.warmup_steps, 30u);
    EXPECT_EQ(config.total_steps, 1000u);
    EXPECT_EQ(config.final_ratio, 0.2);
    EXPECT_EQ(config.decay_fraction, 0.4);
  }
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
