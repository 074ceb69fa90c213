// --help and --version.
#ifndef AUTOLOCO_COMMON_CONFIG_HELP_H_
#define AUTOLOCO_COMMON_CONFIG_HELP_H_

#include <string>

#include "absl/strings/string_view.h"
#include "common/config/settings.h"

namespace autoloco {

struct ProgramText {
  absl::string_view name;     // "autoloco-server"
  absl::string_view summary;  // one sentence
};

// Usage, the built-in flags, and every setting with its flag, default, range, unit and meaning.
std::string HelpText(const ProgramText& program, const SettingTable& table);

// "autoloco-server 0.1.0"
std::string VersionText(const ProgramText& program);

// The default as help and documents show it: "0.7 seconds", "empty", "required".
std::string DefaultText(const SettingField& setting);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CONFIG_HELP_H_
