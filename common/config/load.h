// How a program gets its configuration: built-in defaults < model preset < config file < environment < flags.
//
//   int main(int argc, char** argv) {
//     v1::ServerConfig config;
//     const Outcome outcome = LoadServerConfig(ProgramArguments(argc, argv), ProcessEnvironment(), &config);
//     Write(outcome);
//     if (outcome.exits) return outcome.exit_code;
//     ...
#ifndef AUTOLOCO_COMMON_CONFIG_LOAD_H_
#define AUTOLOCO_COMMON_CONFIG_LOAD_H_

#include <string>
#include <vector>

#include "autoloco/v1/run_config.pb.h"

namespace autoloco {

// What to do after loading. Everything printed ends with a line feed.
struct Outcome {
  bool exits = false;  // --help, --version, --check-config, --print-config, or an error
  int exit_code = 0;   // 0, or 2 for an error
  std::string out;     // for standard output
  std::string err;     // for standard error: one line "autoloco-server: ..." for an error, or the warnings
};

// Loads from `arguments` (without the program's name) and `environment` (NAME=VALUE). Unless the outcome `exits`, every
// setting of `config` is set (there are no unset optional fields left), in range, and the rules of validate.h hold.
Outcome LoadServerConfig(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                         v1::ServerConfig* config);
Outcome LoadWorkerConfig(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                         v1::WorkerConfig* config);

std::vector<std::string> ProgramArguments(int argc, char** argv);

// Writes `out` and `err` to standard output and standard error.
void Write(const Outcome& outcome);

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_CONFIG_LOAD_H_
