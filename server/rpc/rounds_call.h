// GetRounds: a part of the history of committed rounds.
#ifndef AUTOLOCO_SERVER_RPC_ROUNDS_CALL_H_
#define AUTOLOCO_SERVER_RPC_ROUNDS_CALL_H_

#include <grpcpp/support/server_callback.h>

#include <vector>

#include "autoloco/v1/admin.pb.h"
#include "server/core/round_record.h"
#include "server/rpc/call_record.h"
#include "server/rpc/rpc_context.h"
#include "server/runtime/calls.h"

namespace autoloco::server {

inline constexpr std::size_t kRoundsPerReplyMax = 4096;  // well below what one message may hold

v1::RoundRecord ToProto(const RoundRecord& record);
v1::Rounds ToProto(const std::vector<RoundRecord>& history, const v1::GetRoundsRequest& request);

// Deletes itself after End() or Answer().
class RoundsReactor final : public grpc::ServerUnaryReactor, public RoundsCall {
 public:
  // `context` outlives the reactor; `request` and `reply` live until OnDone. Posts RoundsParked.
  RoundsReactor(const RpcContext* context, const v1::GetRoundsRequest* request, v1::Rounds* reply);

  void Answer(const std::vector<RoundRecord>& history) override;
  void End(const absl::Status& status) override;
  void OnDone() override { delete this; }

 private:
  const v1::GetRoundsRequest* const request_;
  v1::Rounds* const reply_;
  CallRecord record_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RPC_ROUNDS_CALL_H_
