#include "common/config/help.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/config/value.h"

namespace autoloco {
namespace {

constexpr std::size_t kHelpColumns = 100;

// `text` as lines of at most kHelpColumns columns, each behind `indent`.
void AppendWrapped(absl::string_view text, absl::string_view indent, std::string* out) {
  std::string line(indent);
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (line.size() > indent.size() && line.size() + 1 + word.size() > kHelpColumns) {
      absl::StrAppend(out, line, "\n");
      line = std::string(indent);
    }
    absl::StrAppend(&line, line.size() > indent.size() ? " " : "", word);
  }
  absl::StrAppend(out, line, "\n");
}

absl::string_view ValueWord(const SettingField& setting) {
  using google::protobuf::FieldDescriptor;
  switch (setting.leaf()->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: return "";
    case FieldDescriptor::CPPTYPE_ENUM: return " NAME";
    case FieldDescriptor::CPPTYPE_STRING: return " TEXT";
    default: return " NUMBER";
  }
}

}  // namespace

std::string DefaultText(const SettingField& setting) {
  if (setting.declared.required()) return "required";
  if (setting.declared.default_().empty()) return "empty";
  const absl::string_view unit = setting.declared.unit();
  return absl::StrCat(setting.declared.default_(), unit.empty() ? "" : " ", unit);
}

std::string HelpText(const ProgramText& program, const SettingTable& table) {
  std::string help = absl::StrCat("Usage: ", program.name, " [--config FILE] [--key value | --key=value]...\n\n");
  AppendWrapped(program.summary, "", &help);
  absl::StrAppend(
      &help,
      "\n"
      "  --config FILE   YAML file with settings\n"
      "  --check-config  check the configuration and exit: 0 if it is valid, else 2\n"
      "  --print-config  print the resulting configuration as YAML and exit\n"
      "  --version       print the version and exit\n"
      "  --help, -h      print this text and exit\n"
      "\n"
      "Settings. Defaults give way to the model preset, that to the file, that to the environment and that\n"
      "to flags. A flag is the setting's name or the end of it; dashes and underscores are the same. A\n"
      "boolean flag stands alone (--key, --no-key). In the environment run.seed is AUTOLOCO__RUN__SEED.\n");
  for (const SettingField& setting : table.settings()) {
    absl::StrAppend(&help, "\n  ", FlagName(table, setting), ValueWord(setting), "  (", setting.path, ")\n");
    AppendWrapped(setting.declared.help(), "      ", &help);
    AppendWrapped(absl::StrCat("Default: ", DefaultText(setting), ". Takes ", Expectation(setting), "."), "      ",
                  &help);
  }
  return help;
}

std::string VersionText(const ProgramText& program) { return absl::StrCat(program.name, " ", AUTOLOCO_VERSION, "\n"); }

}  // namespace autoloco
