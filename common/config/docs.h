// deploy/SETTINGS.md: the settings of both programs as tables.
#ifndef AUTOLOCO_COMMON_CONFIG_DOCS_H_
#define AUTOLOCO_COMMON_CONFIG_DOCS_H_

#include <string>

namespace autoloco {

// The whole file, as Markdown. config_test compares it with the committed one and rewrites that on request.
std::string SettingsMarkdown();

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CONFIG_DOCS_H_
