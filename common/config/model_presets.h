// Named model shapes: run.model.preset.
#ifndef AUTOLOCO_COMMON_CONFIG_MODEL_PRESETS_H_
#define AUTOLOCO_COMMON_CONFIG_MODEL_PRESETS_H_

#include "autoloco/v1/run_config.pb.h"

namespace autoloco {

// Gives the fields of the model that are not set those of `model->preset()`; `custom` sets nothing. Fields that are set
// win. REQUIRES: the preset is set.
void FillFromPreset(v1::ModelConfig* model);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CONFIG_MODEL_PRESETS_H_
