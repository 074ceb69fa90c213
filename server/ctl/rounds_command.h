// `autoloco rounds`: the history of intervals and outer steps.
#ifndef AUTOLOCO_SERVER_CTL_ROUNDS_COMMAND_H_
#define AUTOLOCO_SERVER_CTL_ROUNDS_COMMAND_H_

#include "server/ctl/command.h"

namespace autoloco::server {

extern const Command kRoundsCommand;

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CTL_ROUNDS_COMMAND_H_
