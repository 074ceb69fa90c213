// The program `autoloco`.
#include <iostream>
#include <string>
#include <vector>

#include "server/ctl/command_line.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return autoloco::server::RunCommandLine(arguments, std::cout, std::cerr);
}
