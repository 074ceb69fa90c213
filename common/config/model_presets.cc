#include "common/config/model_presets.h"

#include <cstdint>

#include "common/base/check.h"

namespace autoloco {
namespace {

struct Preset {
  v1::ModelConfig::Preset name;
  std::uint32_t vocab_size;
  std::uint32_t width;
  std::uint32_t layers;
  std::uint32_t heads;
  std::uint32_t kv_heads;
  std::uint32_t mlp_hidden;
  std::uint32_t context;
};

// nano and tiny are for tests and the quickstart. The others have layers, width and heads of DiLoCo's table 1 (arXiv
// 2311.08105) with its vocabulary; the SwiGLU hidden size is 8/3 of the width rounded up to a multiple of 64, which
// makes the feed-forward about as large as the plain one of four widths. Parameters, with the tied head:
//   nano       110,912
//   tiny       787,584
//   60m     57,923,712
//   150m   145,676,160
//   400m   388,929,024
constexpr Preset kPresets[] = {
    {v1::ModelConfig::PRESET_NANO, 256, 64, 2, 2, 2, 160, 64},
    {v1::ModelConfig::PRESET_TINY, 256, 128, 4, 4, 4, 320, 128},
    {v1::ModelConfig::PRESET_60M, 32000, 896, 3, 16, 16, 2432, 1024},
    {v1::ModelConfig::PRESET_150M, 32000, 896, 12, 16, 16, 2432, 1024},
    {v1::ModelConfig::PRESET_400M, 32000, 1536, 12, 12, 12, 4096, 1024},
};

}  // namespace

void FillFromPreset(v1::ModelConfig* model) {
  AUTOLOCO_CHECK(model->has_preset());
  for (const Preset& preset : kPresets) {
    if (preset.name != model->preset()) continue;
    v1::ModelConfig filled;
    filled.set_vocab_size(preset.vocab_size);
    filled.set_width(preset.width);
    filled.set_layers(preset.layers);
    filled.set_heads(preset.heads);
    filled.set_kv_heads(preset.kv_heads);
    filled.set_mlp_hidden(preset.mlp_hidden);
    filled.set_context(preset.context);
    filled.MergeFrom(*model);  // what is given wins
    *model = filled;
  }
}

}  // namespace autoloco
