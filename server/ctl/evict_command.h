// `autoloco evict`.
#ifndef AUTOLOCO_SERVER_CTL_EVICT_COMMAND_H_
#define AUTOLOCO_SERVER_CTL_EVICT_COMMAND_H_

#include "server/ctl/command.h"

namespace autoloco::server {

extern const Command kEvictCommand;

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CTL_EVICT_COMMAND_H_
