// One Push stream.
//
//   reading the header -> parked (nothing is read) -> receiving -> waiting for the answer
//
// While receiving, each chunk is copied from gRPC's buffers into the payload before the next one is read: a sender that
// is faster than the server is held back by gRPC's flow control.
#ifndef AUTOLOCO_SERVER_RPC_PUSH_REACTOR_H_
#define AUTOLOCO_SERVER_RPC_PUSH_REACTOR_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/bulk_message.h"
#include "server/rpc/call_record.h"
#include "server/rpc/rpc_context.h"
#include "server/runtime/calls.h"

namespace autoloco::server {

// Deletes itself after End() or Answer().
class PushReactor final : public grpc::ServerReadReactor<grpc::ByteBuffer>, public PushCall {
 public:
  // `context` outlives the reactor; `reply`, a PushReply as bytes, lives until OnDone. Posts PushStarted.
  PushReactor(const RpcContext* context, grpc::ByteBuffer* reply);

  // PushCall.
  void ReadHeader() override { StartRead(&request_); }
  void ReceivePayload(std::shared_ptr<PayloadPart> part) override;
  void Answer(PushOutcome outcome, const std::string& reason, bool replayed) override;
  void End(const absl::Status& status) override;

  // Reactions.
  void OnReadDone(bool ok) override;
  void OnCancel() override { context_->inbox->Post(PushAbandoned{ticket_}); }
  void OnDone() override { delete this; }

 private:
  void OnHeader(bool ok);
  absl::StatusOr<PushHeaderRead> ReadHeaderMessage();
  void OnChunk(bool ok);

  const RpcContext* const context_;
  grpc::ByteBuffer* const reply_;
  const Ticket ticket_;
  CallRecord record_;
  grpc::ByteBuffer request_;           // gRPC's while a read is under way
  ReceivedBulk message_;               // of the reactions
  std::shared_ptr<PayloadPart> part_;  // set before the first chunk is read
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RPC_PUSH_REACTOR_H_
