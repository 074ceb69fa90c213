// The command line of `autoloco`: finds the sub-command, answers --help and --version.
#ifndef AUTOLOCO_SERVER_CTL_COMMAND_LINE_H_
#define AUTOLOCO_SERVER_CTL_COMMAND_LINE_H_

#include <ostream>
#include <span>
#include <string>

namespace autoloco::server {

// Runs `autoloco ARGUMENTS...` (without the program's name) and returns its exit code. Not thread-safe.
int RunCommandLine(std::span<const std::string> arguments, std::ostream& out, std::ostream& err);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CTL_COMMAND_LINE_H_
