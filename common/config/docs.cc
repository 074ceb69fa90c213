#include "common/config/docs.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "autoloco/v1/run_config.pb.h"
#include "common/config/help.h"
#include "common/config/settings.h"
#include "common/config/value.h"

namespace autoloco {
namespace {

std::string Cell(absl::string_view text) { return absl::StrReplaceAll(text, {{"|", "\\|"}, {"*", "\\*"}}); }

void AppendRow(const SettingTable& table, const SettingField& setting, std::string* out) {
  absl::StrAppend(out, "| `", setting.path, "` | `", FlagName(table, setting), "` | ", Cell(DefaultText(setting)),
                  " | ", Cell(Expectation(setting)), " | ", Cell(setting.declared.help()), " |\n");
}

// One table a section: run, run.model, ..., server.
void AppendTables(const SettingTable& table, std::string* out) {
  std::string section;
  for (const SettingField& setting : table.settings()) {
    const std::string own = setting.path.substr(0, setting.path.rfind('.'));
    if (own != section) {
      section = own;
      absl::StrAppend(out, "\n### ", section,
                      "\n\n| Setting | Flag | Default | Takes | Meaning |\n|---|---|---|---|---|\n");
    }
    AppendRow(table, setting, out);
  }
}

}  // namespace

std::string SettingsMarkdown() {
  std::string out = R"(# Settings

Made from `proto/autoloco/v1/run_config.proto` by `AUTOLOCO_UPDATE_GOLDEN=1 build/release/tests/config_test`; do not
edit by hand.

Each setting can be given in the YAML file of `--config` (`run: {outer: {learning_rate: 0.7}}`), in the environment
(`AUTOLOCO__RUN__OUTER__LEARNING_RATE=0.7`: the name in capitals, dots as two underscores) and as a flag
(`--outer.learning-rate 0.7`). Flags win over the environment, that over the file, that over the model preset, and that
over the defaults. A flag is the name or an ending of it that means one setting only; dashes and underscores are the same.
`--check-config` checks a configuration, `--print-config` prints the result of all sources.

## autoloco-server
)";
  AppendTables(SettingTable(v1::ServerConfig::descriptor()), &out);
  absl::StrAppend(&out, "\n## autoloco-worker\n");
  AppendTables(SettingTable(v1::WorkerConfig::descriptor()), &out);
  return out;
}

}  // namespace autoloco
