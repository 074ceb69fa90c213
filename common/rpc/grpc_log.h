// gRPC's own messages as lines of our log.
#ifndef AUTOLOCO_COMMON_RPC_GRPC_LOG_H_
#define AUTOLOCO_COMMON_RPC_GRPC_LOG_H_

namespace autoloco {

// From now on what gRPC says appears as `grpc` events: errors as warnings, the rest at debug level. Call once, before
// gRPC is used.
void RouteGrpcLog();

}  // namespace autoloco

#endif  // AUTOLOCO_COMMON_RPC_GRPC_LOG_H_
