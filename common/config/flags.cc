#include "common/config/flags.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "common/config/suggest.h"
#include "common/config/value.h"

namespace autoloco {
namespace {

bool Contains(const std::vector<std::string>& arguments, absl::string_view wanted) {
  return std::find(arguments.begin(), arguments.end(), wanted) != arguments.end();
}

absl::Status FlagError(absl::string_view flag, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("flag ", flag, ": ", what));
}

// Walks the arguments once.
class FlagParser {
 public:
  FlagParser(const std::vector<std::string>& arguments, const SettingTable& table)
      : arguments_(arguments), table_(table) {}

  absl::StatusOr<CommandLine> Parse() {
    while (next_ < arguments_.size()) {
      const std::string& argument = arguments_[next_++];
      if (!absl::StartsWith(argument, "--") || argument.size() == 2) {
        return absl::InvalidArgumentError(absl::StrCat("argument ", Quoted(argument),
                                                       ": expected a flag (--key value), found a positional argument"));
      }
      const std::size_t equals = argument.find('=');
      value_.reset();
      if (equals != std::string::npos) value_ = argument.substr(equals + 1);
      AUTOLOCO_RETURN_IF_ERROR(ParseOne(argument.substr(0, equals)));
    }
    return std::move(line_);
  }

 private:
  absl::Status ParseOne(const std::string& flag) {
    if (flag == "--check-config") return SetSwitch(flag, &line_.check_config);
    if (flag == "--print-config") return SetSwitch(flag, &line_.print_config);
    if (flag == "--config") return SetConfigFile();
    const std::string name = flag.substr(2);
    const std::vector<const SettingField*> candidates = FindByFlag(table_, name);
    if (candidates.size() == 1) return SetValue(flag, *candidates[0]);
    if (candidates.size() > 1) return Ambiguous(flag, candidates);
    if (absl::StartsWith(name, "no-") || absl::StartsWith(name, "no_")) {
      const std::vector<const SettingField*> negated = FindByFlag(table_, name.substr(3));
      if (negated.size() == 1 && negated[0]->is_bool()) return SetNegated(flag, *negated[0]);
    }
    return Unknown(flag);
  }

  absl::Status SetSwitch(const std::string& flag, bool* on) {
    if (value_) return FlagError(flag, absl::StrCat("expected no value, found ", Quoted(*value_)));
    *on = true;
    return absl::OkStatus();
  }

  absl::Status SetConfigFile() {
    AUTOLOCO_ASSIGN_OR_RETURN(std::string path, TakeValue("--config", "the path of a config file"));
    if (path.empty()) return FlagError("--config", "expected the path of a config file, found ''");
    if (!line_.config_file.empty()) return FlagError("--config", "expected once, found twice");
    line_.config_file = std::move(path);
    return absl::OkStatus();
  }

  absl::Status SetValue(const std::string& flag, const SettingField& setting) {
    // A boolean stands alone, or takes a following "true" or "false" (which could mean nothing else).
    if (setting.is_bool() && !value_) {
      const bool spelled = next_ < arguments_.size() && (arguments_[next_] == "true" || arguments_[next_] == "false");
      return AddValue(flag, setting, spelled ? arguments_[next_++] : "true");
    }
    AUTOLOCO_ASSIGN_OR_RETURN(std::string text, TakeValue(flag, Expectation(setting)));
    return AddValue(flag, setting, std::move(text));
  }

  absl::Status SetNegated(const std::string& flag, const SettingField& setting) {
    if (value_) return FlagError(flag, absl::StrCat("expected no value, found ", Quoted(*value_)));
    return AddValue(flag, setting, "false");
  }

  absl::Status AddValue(const std::string& flag, const SettingField& setting, std::string text) {
    for (const FlagValue& earlier : line_.values) {
      if (earlier.setting != &setting) continue;
      return FlagError(flag, absl::StrCat(setting.path, ": expected once, found twice (first as ", earlier.flag, ")"));
    }
    line_.values.push_back({&setting, std::move(text), flag});
    return absl::OkStatus();
  }

  // The text after "=", else the next argument. A value that begins with "--" must be written with "=".
  absl::StatusOr<std::string> TakeValue(absl::string_view flag, absl::string_view expected) {
    if (value_) return *std::move(value_);
    if (next_ == arguments_.size()) return FlagError(flag, absl::StrCat("expected ", expected, ", found no value"));
    if (absl::StartsWith(arguments_[next_], "--")) {
      return FlagError(flag, absl::StrCat("expected ", expected, ", found the flag ", Quoted(arguments_[next_])));
    }
    return arguments_[next_++];
  }

  static absl::Status Ambiguous(absl::string_view flag, const std::vector<const SettingField*>& candidates) {
    const auto as_flag = [](std::string* out, const SettingField* setting) {
      absl::StrAppend(out, "--", setting->path);
    };
    return FlagError(flag,
                     absl::StrCat("expected one setting, found several: ", absl::StrJoin(candidates, ", ", as_flag)));
  }

  absl::Status Unknown(const std::string& flag) const {
    std::set<std::string> known = {"--config", "--check-config", "--print-config", "--version", "--help"};
    for (const SettingField& setting : table_.settings()) {
      absl::string_view name = setting.path;  // every ending of the path
      for (std::size_t dot = 0; dot != absl::string_view::npos; dot = name.find('.')) {
        if (dot != 0) name.remove_prefix(dot + 1);
        known.insert(absl::StrCat("--", absl::StrReplaceAll(name, {{"_", "-"}})));
      }
    }
    const std::string near =
        NearestName(absl::StrReplaceAll(flag, {{"_", "-"}}), std::vector<std::string>(known.begin(), known.end()));
    return FlagError(Quoted(flag), near.empty() ? "unknown; --help lists all flags"
                                                : absl::StrCat("unknown; did you mean ", near, "?"));
  }

  const std::vector<std::string>& arguments_;
  const SettingTable& table_;
  CommandLine line_;
  std::size_t next_ = 0;              // the argument to look at
  std::optional<std::string> value_;  // what follows "=" in the current one
};

}  // namespace

absl::StatusOr<CommandLine> ParseFlags(const std::vector<std::string>& arguments, const SettingTable& table) {
  CommandLine line;
  line.help = Contains(arguments, "--help") || Contains(arguments, "-h");
  line.version = Contains(arguments, "--version");
  if (line.help || line.version) return line;
  return FlagParser(arguments, table).Parse();
}

}  // namespace autoloco
