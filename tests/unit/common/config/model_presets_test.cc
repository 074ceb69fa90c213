#include "common/config/model_presets.h"

#include <gtest/gtest.h>

#include "common/config/convert.h"
#include "common/config/settings.h"
#include "common/config/value.h"
#include "common/tensor/decoder.h"

namespace autoloco {
namespace {

v1::ModelConfig Filled(v1::ModelConfig::Preset preset) {
  v1::ModelConfig model;
  model.set_preset(preset);
  FillFromPreset(&model);
  const SettingTable table(v1::ModelConfig::descriptor());
  SettingValues values(&table, &model);
  EXPECT_TRUE(values.FillDefaults().ok());
  return model;
}

TEST(ModelPresetsTest, ParameterCounts) {
  struct Case {
    v1::ModelConfig::Preset preset;
    std::uint64_t parameters;
  };
  for (const Case& c : {Case{v1::ModelConfig::PRESET_NANO, 110912}, Case{v1::ModelConfig::PRESET_TINY, 787584},
                        Case{v1::ModelConfig::PRESET_60M, 57923712}, Case{v1::ModelConfig::PRESET_150M, 145676160},
                        Case{v1::ModelConfig::PRESET_400M, 388929024}}) {
    const absl::StatusOr<Layout> layout = MakeDecoderLayout(ToDecoderShape(Filled(c.preset)));
    ASSERT_TRUE(layout.ok()) << layout.status();
    EXPECT_EQ(layout->value_count(), c.parameters);
  }
}

TEST(ModelPresetsTest, EveryPresetIsAValidShapeWithinTheRanges) {
  const SettingTable table(v1::ModelConfig::descriptor());
  const auto* presets = v1::ModelConfig::Preset_descriptor();
  for (int i = 1; i < presets->value_count(); ++i) {
    SCOPED_TRACE(presets->value(i)->name());
    const v1::ModelConfig model = Filled(static_cast<v1::ModelConfig::Preset>(presets->value(i)->number()));
    EXPECT_TRUE(ValidateDecoderShape(ToDecoderShape(model)).ok());
    v1::ModelConfig copy;
    for (const SettingField& setting : table.settings()) {
      EXPECT_TRUE(SetFromText(setting, ToText(setting, model), &copy).ok()) << setting.path;
    }
  }
}

TEST(ModelPresetsTest, GivenFieldsWin) {
  v1::ModelConfig model;
  model.set_preset(v1::ModelConfig::PRESET_60M);
  model.set_vocab_size(256);
  model.set_tied_head(false);
  FillFromPreset(&model);
  EXPECT_EQ(model.vocab_size(), 256u);
  EXPECT_FALSE(model.tied_head());
  EXPECT_EQ(model.width(), 896u);
  EXPECT_EQ(model.layers(), 3u);
}

TEST(ModelPresetsTest, CustomIsTheDefaults) {
  v1::ModelConfig model;
  model.set_preset(v1::ModelConfig::PRESET_CUSTOM);
  FillFromPreset(&model);
  EXPECT_FALSE(model.has_width());
  EXPECT_EQ(Filled(v1::ModelConfig::PRESET_CUSTOM).width(), 128u);
}

}  // namespace
}  // namespace autoloco
