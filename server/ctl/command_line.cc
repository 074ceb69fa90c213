#include "server/ctl/command_line.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <iomanip>

#include "server/ctl/command.h"
#include "server/ctl/evict_command.h"
#include "server/ctl/rounds_command.h"
#include "server/ctl/status_command.h"
#include "server/ctl/verify_command.h"

namespace autoloco::server {
namespace {

constexpr std::array<const Command*, 4> kCommands = {&kStatusCommand, &kRoundsCommand, &kEvictCommand, &kVerifyCommand};

void PrintHelp(std::ostream& out) {
  out << "Usage: autoloco COMMAND [OPTIONS]\n\n"
         "Looks at and steers a running autoloco-server, and checks what it has stored.\n\nCommands:\n";
  std::size_t width = 0;
  for (const Command* command : kCommands) width = std::max(width, std::strlen(command->name));
  for (const Command* command : kCommands) {
    out << "  " << std::left << std::setw(static_cast<int>(width)) << command->name << "  " << command->summary << "\n";
  }
  out << "\nOptions:\n"
         "  --help     this text; after a command, that command's\n"
         "  --version  the version of this program\n\n"
         "Exit codes: 0 done, 1 the server was not reached or refused or something stored is damaged, 2 wrong usage.\n";
}

bool IsHelp(const std::string& argument) { return argument == "--help" || argument == "-h"; }

}  // namespace

int RunCommandLine(std::span<const std::string> arguments, std::ostream& out, std::ostream& err) {
  if (arguments.empty()) {
    err << "autoloco: no command given\n";
    PrintHelp(err);
    return kExitUsage;
  }
  const std::string& name = arguments.front();
  if (IsHelp(name) || name == "help") {
    PrintHelp(out);
    return kExitOk;
  }
  if (name == "--version") {
    out << "autoloco " << AUTOLOCO_VERSION << "\n";
    return kExitOk;
  }
  const auto found = std::find_if(kCommands.begin(), kCommands.end(),
                                  [&name](const Command* command) { return name == command->name; });
  if (found == kCommands.end()) {
    err << "autoloco: unknown command '" << name << "'; `autoloco --help` lists them\n";
    return kExitUsage;
  }
  const std::span<const std::string> rest = arguments.subspan(1);
  if (std::any_of(rest.begin(), rest.end(), IsHelp)) {
    out << (*found)->usage;
    return kExitOk;
  }
  return (*found)->run(rest, out, err);
}

}  // namespace autoloco::server
