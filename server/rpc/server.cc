#include "server/rpc/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/rpc/deadline.h"

namespace autoloco::server {
namespace {

// Time for peers to see that the server goes, once no call is open; a peer that only holds a connection may take long.
constexpr absl::Duration kDisconnect = absl::Milliseconds(100);

}  // namespace

RpcServer::RpcServer(const RpcContext* context) : context_(context), parameter_server_(context), admin_(context) {}

RpcServer::~RpcServer() { AUTOLOCO_CHECK(server_ == nullptr); }

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(const ListenOptions& options, const RpcContext* context) {
  std::unique_ptr<RpcServer> server(new RpcServer(context));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  AUTOLOCO_RETURN_IF_ERROR(ConfigureListen(options, &server->port_, &builder));
  builder.RegisterService(&server->parameter_server_);
  builder.RegisterService(&server->admin_);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || server->port_ == 0) {
    if (server->server_ != nullptr) server->server_->Shutdown();
    server->server_ = nullptr;
    return absl::FailedPreconditionError(
        absl::StrCat("cannot listen on ", options.listen, ": the port is in use, or the address is not this machine's"));
  }
  return server;
}

void RpcServer::Shutdown(absl::Duration grace) {
  context_->inbox->Post(CloseCalls{});
  context_->open_calls->WaitUntilNone(grace);
  server_->Shutdown(DeadlineAfter(kDisconnect));
  server_->Wait();
  server_ = nullptr;
}

}  // namespace autoloco::server
