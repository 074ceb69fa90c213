// Settings from the environment: AUTOLOCO__RUN__OUTER__LEARNING_RATE=0.5. Two underscores, so that the variables that
// Kubernetes makes for a service called autoloco-... (AUTOLOCO_SERVER_PORT=tcp://...) mean nothing here.
#ifndef AUTOLOCO_COMMON_CONFIG_ENVIRONMENT_H_
#define AUTOLOCO_COMMON_CONFIG_ENVIRONMENT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/config/settings.h"

namespace autoloco {

// The environment of this process as NAME=VALUE. The only place of the project that reads it.
std::vector<std::string> ProcessEnvironment();

// Sets what the variables AUTOLOCO__... give. Names that only `other` knows (the other program, on the same host) are
// passed over; names that neither knows are INVALID_ARGUMENT with the nearest known one, and so are bad values.
absl::Status ReadEnvironment(const std::vector<std::string>& environment, const SettingTable& other,
                             SettingValues* values);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CONFIG_ENVIRONMENT_H_
