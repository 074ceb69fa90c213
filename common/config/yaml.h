// Config files: YAML into settings, and back for --print-config.
#ifndef AUTOLOCO_COMMON_CONFIG_YAML_H_
#define AUTOLOCO_COMMON_CONFIG_YAML_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/config/settings.h"

namespace autoloco {

// Sets what the text of a config file gives. `name` stands for the file in errors and origins. INVALID_ARGUMENT
// "name:line:column: key: expected ..., found ..." for unknown keys (with the nearest known one), duplicate keys, wrong
// types and values out of range. Numbers and booleans must be plain, text may be plain or quoted, null is refused.
absl::Status ReadYaml(absl::string_view text, absl::string_view name, SettingValues* values);

// The same from the file at `path`. Also NOT_FOUND or PERMISSION_DENIED or INVALID_ARGUMENT, with the path, when the
// file cannot be read.
absl::Status ReadYamlFile(const std::string& path, SettingValues* values);

// Every given setting of `message`, in the order of the table; ReadYaml reads it back to the same message.
std::string ToYaml(const SettingTable& table, const google::protobuf::Message& message);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CONFIG_YAML_H_
