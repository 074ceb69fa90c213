#include "common/config/environment.h"

#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/config/suggest.h"
#include "common/config/value.h"

namespace autoloco {
namespace {

const SettingField* FindByEnvironment(const SettingTable& table, absl::string_view name) {
  for (const SettingField& setting : table.settings()) {
    if (setting.environment == name) return &setting;
  }
  return nullptr;
}

absl::Status UnknownVariable(absl::string_view name, const SettingTable& table) {
  std::vector<std::string> names;
  for (const SettingField& setting : table.settings()) names.push_back(setting.environment);
  const std::string near = NearestName(name, names);
  return absl::InvalidArgumentError(
      absl::StrCat("environment variable ", Quoted(name), ": expected the name of a setting",
                   near.empty() ? " (such as " : "; did you mean ", near.empty() ? names.front() : near,
                   near.empty() ? "), found none of this name" : "?"));
}

}  // namespace

std::vector<std::string> ProcessEnvironment() {
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) environment.emplace_back(*entry);
  return environment;
}

absl::Status ReadEnvironment(const std::vector<std::string>& environment, const SettingTable& other,
                             SettingValues* values) {
  for (const absl::string_view entry : environment) {
    if (!absl::StartsWith(entry, "AUTOLOCO__")) continue;
    const std::size_t equals = entry.find('=');
    if (equals == absl::string_view::npos) continue;
    const absl::string_view name = entry.substr(0, equals);
    const SettingField* setting = FindByEnvironment(values->table(), name);
    if (setting == nullptr && FindByEnvironment(other, name) != nullptr) continue;
    if (setting == nullptr) return UnknownVariable(name, values->table());
    AUTOLOCO_RETURN_IF_ERROR(
        values->Set(*setting, entry.substr(equals + 1), absl::StrCat("environment variable ", name)));
  }
  return absl::OkStatus();
}

}  // namespace autoloco
