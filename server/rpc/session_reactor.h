// One Session stream.
//
//   opened -> (reading one message -> posted -> the loop resumes) ... -> ended
//
// Reads and writes are started by the loop thread only; the reactions only post.
#ifndef AUTOLOCO_SERVER_RPC_SESSION_REACTOR_H_
#define AUTOLOCO_SERVER_RPC_SESSION_REACTOR_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "autoloco/v1/parameter_server.pb.h"
#include "server/rpc/call_record.h"
#include "server/rpc/rpc_context.h"
#include "server/runtime/calls.h"

namespace autoloco::server {

// Deletes itself after End().
class SessionReactor final : public grpc::ServerBidiReactor<v1::WorkerMessage, v1::ServerMessage>, public SessionCall {
 public:
  // Both contexts outlive the reactor. Posts SessionOpened.
  SessionReactor(const RpcContext* context, grpc::CallbackServerContext* call);

  // SessionCall.
  void ReadNext() override { StartRead(&incoming_); }
  void Send(const SessionMessage& message) override;
  void Cut() override { call_->TryCancel(); }
  void End(const absl::Status& status) override;

  // Reactions.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  const RpcContext* const context_;
  grpc::CallbackServerContext* const call_;
  const Ticket ticket_;
  CallRecord record_;
  v1::WorkerMessage incoming_;  // gRPC's while a read is under way
  v1::ServerMessage outgoing_;  // gRPC's while a write is under way
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RPC_SESSION_REACTOR_H_
