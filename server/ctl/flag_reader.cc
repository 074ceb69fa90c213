#include "server/ctl/flag_reader.h"

#include <cmath>
#include <cstddef>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace autoloco::server {

void FlagReader::Text(absl::string_view name, std::string* value) { texts_[std::string(name)] = value; }
void FlagReader::Seconds(absl::string_view name, double* value) { seconds_[std::string(name)] = value; }
void FlagReader::Switch(absl::string_view name, bool* value) { switches_[std::string(name)] = value; }

absl::Status FlagReader::Parse(std::span<const std::string> arguments) {
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    const std::string& argument = arguments[index];
    if (argument.size() < 3 || argument.compare(0, 2, "--") != 0) {
      return absl::InvalidArgumentError(absl::StrCat("unexpected argument '", argument, "'"));
    }
    const std::size_t equals = argument.find('=');
    const bool joined = equals != std::string::npos;
    const std::string name = argument.substr(2, joined ? equals - 2 : std::string::npos);
    const auto on = switches_.find(name);
    if (on == switches_.end() && texts_.count(name) == 0 && seconds_.count(name) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("unknown option '--", name, "'"));
    }
    if (!seen_.insert(name).second) return absl::InvalidArgumentError(absl::StrCat("--", name, " is given twice"));
    if (on != switches_.end()) {
      if (joined) return absl::InvalidArgumentError(absl::StrCat("--", name, " takes no value"));
      *on->second = true;
      continue;
    }
    if (!joined && index + 1 == arguments.size()) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value"));
    }
    AUTOLOCO_RETURN_IF_ERROR(Assign(name, joined ? argument.substr(equals + 1) : arguments[++index]));
  }
  return absl::OkStatus();
}

absl::Status FlagReader::Assign(const std::string& name, const std::string& value) {
  if (const auto text = texts_.find(name); text != texts_.end()) {
    if (value.empty()) return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value"));
    *text->second = value;
    return absl::OkStatus();
  }
  double number = 0;
  if (!absl::SimpleAtod(value, &number) || !std::isfinite(number) || number <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, ": want a number of seconds above 0, got '", value, "'"));
  }
  *seconds_.at(name) = number;
  return absl::OkStatus();
}

}  // namespace autoloco::server
