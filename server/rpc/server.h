// The gRPC server: both services, health and reflection, on one port.
//
// A process ends in this order: RpcServer::Shutdown (new calls are turned away and those that wait are answered by the
// loop, which still runs) -> EventLoop::Stop -> CommitRunner and WorkPool joined -> storage closed.
#ifndef AUTOLOCO_SERVER_RPC_SERVER_H_
#define AUTOLOCO_SERVER_RPC_SERVER_H_

#include <grpcpp/server.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/channel.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/parameter_server_service.h"
#include "server/rpc/rpc_context.h"

namespace autoloco::server {

// Main's thread only.
class RpcServer {
 public:
  // Listens and serves. `context` must outlive the server. FAILED_PRECONDITION naming the address when it cannot be
  // bound (a port that another process has is never shared); errors as ConfigureListen.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(const ListenOptions& options, const RpcContext* context);
  // REQUIRES: Shutdown() has been called.
  ~RpcServer();

  // The port that was bound.
  int port() const { return port_; }

  // Has the loop end the calls that wait and turn away new ones, lets transfers go on for `grace`, then breaks what is
  // left.
  // Returns when the last call is over. REQUIRES: the loop runs.
  void Shutdown(absl::Duration grace);

 private:
  explicit RpcServer(const RpcContext* context);

  const RpcContext* const context_;
  ParameterServerService parameter_server_;
  AdminService admin_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;  // null after Shutdown
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RPC_SERVER_H_
