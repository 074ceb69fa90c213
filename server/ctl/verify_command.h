// `autoloco verify`: is what a server has stored as it was recorded?
#ifndef AUTOLOCO_SERVER_CTL_VERIFY_COMMAND_H_
#define AUTOLOCO_SERVER_CTL_VERIFY_COMMAND_H_

#include "server/ctl/command.h"

namespace autoloco::server {

extern const Command kVerifyCommand;

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CTL_VERIFY_COMMAND_H_
