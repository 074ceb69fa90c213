// One sub-command of `autoloco`. A new one is a file with a Command constant and a line in the table of
// command_line.cc.
#ifndef AUTOLOCO_SERVER_CTL_COMMAND_H_
#define AUTOLOCO_SERVER_CTL_COMMAND_H_

#include <ostream>
#include <span>
#include <string>

namespace autoloco::server {

// Exit codes of `autoloco`.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // the server was not reached, or refused; or something stored is damaged
inline constexpr int kExitUsage = 2;

struct Command {
  const char* name;
  const char* summary;  // one line of `autoloco --help`
  const char* usage;    // whole text of `autoloco NAME --help`, ends with a newline
  // Does the work and returns the exit code. `arguments`: what follows the name, without a --help. Results go to `out`,
  // one clear line to `err` where the code is not 0.
  int (*run)(std::span<const std::string> arguments, std::ostream& out, std::ostream& err);
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CTL_COMMAND_H_
