// `autoloco status`: the run at one glance.
#ifndef AUTOLOCO_SERVER_CTL_STATUS_COMMAND_H_
#define AUTOLOCO_SERVER_CTL_STATUS_COMMAND_H_

#include "server/ctl/command.h"

namespace autoloco::server {

extern const Command kStatusCommand;

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CTL_STATUS_COMMAND_H_
