// From configuration messages to the native types of common/.
#ifndef AUTOLOCO_COMMON_CONFIG_CONVERT_H_
#define AUTOLOCO_COMMON_CONFIG_CONVERT_H_

#include "autoloco/v1/run_config.pb.h"
#include "common/base/log.h"
#include "common/base/schedule.h"
#include "common/tensor/decoder.h"

namespace autoloco {

DecoderShape ToDecoderShape(const v1::ModelConfig& model);

// The inner learning rate of the run. REQUIRES: a named schedule, as every loaded config has.
ScheduleConfig ToScheduleConfig(const v1::RunConfig& run);

// REQUIRES: a named enumerator other than UNSPECIFIED, as every loaded config has.
LogLevel ToLogLevel(v1::LogLevel level);
LogFormat ToLogFormat(v1::LogFormat format);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CONFIG_CONVERT_H_
