// The command line of the server and of the worker.
//
//   --key value   --key=value   --bool   --no-bool
//
// `key` is a setting's path, or an ending of it that means one setting only: --run.rounds.min_workers,
// --rounds.min-workers and --min-workers are the same. There are no positional arguments.
#ifndef AUTOLOCO_COMMON_CONFIG_FLAGS_H_
#define AUTOLOCO_COMMON_CONFIG_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/settings.h"

namespace autoloco {

struct FlagValue {
  const SettingField* setting;  // of the table
  std::string text;
  std::string flag;  // as written: "--min-workers"
};

struct CommandLine {
  bool help = false;          // --help, -h
  bool version = false;       // --version
  bool check_config = false;  // --check-config
  bool print_config = false;  // --print-config
  std::string config_file;    // --config FILE; empty: none
  std::vector<FlagValue> values;
};

// Parses the arguments without the program's name. With --help or --version among them nothing else is looked at.
// INVALID_ARGUMENT for unknown flags (with the nearest known one), ambiguous ones (with the candidates), a setting
// given twice, a missing value and positional arguments. Values are not looked at.
absl::StatusOr<CommandLine> ParseFlags(const std::vector<std::string>& arguments, const SettingTable& table);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CONFIG_FLAGS_H_
