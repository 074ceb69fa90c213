// One Pull stream.
//
//   parked -> sending (header, then chunk after chunk of an immutable payload, or block after block of the live view)
//          -> ended
//
// Each write is started from the reaction to the last one; the loop ends the call when PullEnded says that no write is
// under way any more.
#ifndef AUTOLOCO_SERVER_RPC_PULL_REACTOR_H_
#define AUTOLOCO_SERVER_RPC_PULL_REACTOR_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/rpc/call_record.h"
#include "server/rpc/rpc_context.h"
#include "server/runtime/calls.h"

namespace autoloco::server {

// Deletes itself after End().
class PullReactor final : public grpc::ServerWriteReactor<grpc::ByteBuffer>, public PullCall {
 public:
  // `request`: a PullRequest as bytes. Both contexts outlive the reactor. Posts PullParked or CallRejected.
  PullReactor(const RpcContext* context, grpc::CallbackServerContext* call, const grpc::ByteBuffer& request);

  // PullCall.
  void Send(PullAnswer answer, std::shared_ptr<std::atomic<std::uint64_t>> bytes_moved) override;
  void Cut() override { call_->TryCancel(); }
  void End(const absl::Status& status) override;

  // Reactions.
  void OnWriteDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  absl::StatusOr<PullOpened> Read(const grpc::ByteBuffer& request) const;
  // Makes reply_ the next message; false: there is none.
  bool FillNext();
  void FillChunk();
  void FillLiveBlock();

  const RpcContext* const context_;
  grpc::CallbackServerContext* const call_;
  const Ticket ticket_;
  CallRecord record_;
  PullAnswer answer_;
  std::uint64_t blocks_sent_ = 0;                            // of a live view, the write under way included
  std::uint64_t bytes_sent_ = 0;                             // of a payload, the write under way included
  std::shared_ptr<std::atomic<std::uint64_t>> bytes_moved_;  // written by the reactions only
  grpc::ByteBuffer reply_;                                   // gRPC's while a write is under way
  std::uint64_t reply_bytes_ = 0;                            // of blocks in it
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RPC_PULL_REACTOR_H_
