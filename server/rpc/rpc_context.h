// What every call needs to know and to reach.
#ifndef AUTOLOCO_SERVER_RPC_RPC_CONTEXT_H_
#define AUTOLOCO_SERVER_RPC_RPC_CONTEXT_H_

#include <cstddef>
#include <string>

#include "autoloco/v1/run_config.pb.h"
#include "server/rpc/open_calls.h"
#include "server/runtime/inbox.h"
#include "server/runtime/ports.h"

namespace autoloco::server {

// Constant after construction; outlives every call.
struct RpcContext {
  const Clock* clock = nullptr;
  Inbox* inbox = nullptr;
  Telemetry* telemetry = nullptr;
  std::string run_id;
  v1::RunConfig run;
  OpenCalls* open_calls = nullptr;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RPC_RPC_CONTEXT_H_
