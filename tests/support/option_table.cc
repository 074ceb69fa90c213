#include "tests/support/option_table.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace autoloco::test {

absl::Status UnknownOption(const std::string& argument) {
  return absl::InvalidArgumentError(absl::StrCat("unknown option ", argument));
}

absl::Status ReadOptions(const std::vector<std::string>& arguments, const OptionTable& table) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (const auto found = table.switches.find(argument); found != table.switches.end()) {
      *found->second = true;
      continue;
    }
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const auto setter = table.valued.find(name);
    if (setter == table.valued.end()) {
      if (table.other == nullptr) return UnknownOption(argument);
      AUTOLOCO_RETURN_IF_ERROR(table.other(argument));
      continue;
    }
    if (equals == std::string::npos && i + 1 == arguments.size()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " needs a value"));
    }
    const std::string value = equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
    if (!setter->second(value)) return absl::InvalidArgumentError(absl::StrCat(name, ": cannot use '", value, "'"));
  }
  return absl::OkStatus();
}

OptionSetter Text(std::string* text) {
  return [text](const std::string& value) {
    *text = value;
    return !value.empty();
  };
}

}  // namespace autoloco::test
