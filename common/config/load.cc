#include "common/config/load.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cstdio>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/config/environment.h"
#include "common/config/flags.h"
#include "common/config/help.h"
#include "common/config/model_presets.h"
#include "common/config/settings.h"
#include "common/config/validate.h"
#include "common/config/value.h"
#include "common/config/yaml.h"

namespace autoloco {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::Message;

constexpr int kExitUsage = 2;

Outcome Exit(std::string out) {
  Outcome outcome;
  outcome.exits = true;
  outcome.out = std::move(out);
  return outcome;
}

Outcome Refuse(absl::string_view program, absl::string_view error) {
  Outcome outcome;
  outcome.exits = true;
  outcome.exit_code = kExitUsage;
  outcome.err = absl::StrCat(program, ": ", error, "\n");
  return outcome;
}

// File, environment and flags into `values`, each over the one before.
absl::Status ReadSources(const CommandLine& line, const std::vector<std::string>& environment, const Descriptor* other,
                         SettingValues* values) {
  if (!line.config_file.empty()) AUTOLOCO_RETURN_IF_ERROR(ReadYamlFile(line.config_file, values));
  AUTOLOCO_RETURN_IF_ERROR(ReadEnvironment(environment, SettingTable(other), values));
  for (const FlagValue& value : line.values) {
    AUTOLOCO_RETURN_IF_ERROR(values->Set(*value.setting, value.text, absl::StrCat("flag ", value.flag)));
  }
  return absl::OkStatus();
}

// The preset of the model fills what no source gave; then the defaults do.
absl::Status FillPreset(v1::ServerConfig* config, const SettingTable& table) {
  v1::ModelConfig* model = config->mutable_run()->mutable_model();
  if (!model->has_preset()) {
    const SettingField& preset = *table.Find("run.model.preset");
    AUTOLOCO_RETURN_IF_ERROR(SetFromText(preset, preset.declared.default_(), config));
  }
  FillFromPreset(model);
  return absl::OkStatus();
}
absl::Status FillPreset(v1::WorkerConfig*, const SettingTable&) { return absl::OkStatus(); }

Validation Validate(const v1::ServerConfig& config) { return ValidateServerConfig(config); }
Validation Validate(const v1::WorkerConfig& config) { return ValidateWorkerConfig(config); }

std::string ProblemText(const Problem& problem, const SettingValues& values) {
  const std::string origin = values.Origin(problem.key);
  return absl::StrCat(origin, origin.empty() ? "" : ": ", problem.key, ": ", problem.message);
}

template <typename Config>
Outcome Load(const ProgramText& program, const Descriptor* other, const std::vector<std::string>& arguments,
             const std::vector<std::string>& environment, Config* config) {
  const SettingTable table(Config::descriptor());
  const absl::StatusOr<CommandLine> line = ParseFlags(arguments, table);
  if (!line.ok()) return Refuse(program.name, line.status().message());
  if (line->help) return Exit(HelpText(program, table));
  if (line->version) return Exit(VersionText(program));

  config->Clear();
  SettingValues values(&table, config);
  absl::Status status = ReadSources(*line, environment, other, &values);
  if (status.ok()) status = FillPreset(config, table);
  if (status.ok()) status = values.FillDefaults();
  if (!status.ok()) return Refuse(program.name, status.message());
  const Validation validation = Validate(*config);
  if (!validation.errors.empty()) return Refuse(program.name, ProblemText(validation.errors.front(), values));

  Outcome outcome;
  for (const Problem& warning : validation.warnings) {
    absl::StrAppend(&outcome.err, program.name, ": warning: ", ProblemText(warning, values), "\n");
  }
  outcome.exits = line->check_config || line->print_config;
  if (line->print_config) {
    outcome.out = ToYaml(table, *config);
  } else if (line->check_config) {
    outcome.out = absl::StrCat(program.name, ": the configuration is valid\n");
  }
  return outcome;
}

}  // namespace

Outcome LoadServerConfig(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                         v1::ServerConfig* config) {
  const ProgramText program = {"autoloco-server",
                               "Holds the global parameters of one run and commits its rounds; workers connect to it."};
  return Load(program, v1::WorkerConfig::descriptor(), arguments, environment, config);
}

Outcome LoadWorkerConfig(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                         v1::WorkerConfig* config) {
  const ProgramText program = {"autoloco-worker",
                               "Trains the model of a run on data of its own and synchronises with the run's server."};
  return Load(program, v1::ServerConfig::descriptor(), arguments, environment, config);
}

std::vector<std::string> ProgramArguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) arguments.emplace_back(argv[i]);
  return arguments;
}

void Write(const Outcome& outcome) {
  std::fwrite(outcome.out.data(), 1, outcome.out.size(), stdout);
  std::fflush(stdout);
  std::fwrite(outcome.err.data(), 1, outcome.err.size(), stderr);
}

}  // namespace autoloco
