// Messages <-> the runtime's native types. Protos stop here: what comes in is checked for form once, and nothing
// behind this file sees a message.
//
// Every function that reads a message gives INVALID_ARGUMENT naming the field where it does not hold water.
#ifndef AUTOLOCO_SERVER_RPC_CONVERT_H_
#define AUTOLOCO_SERVER_RPC_CONVERT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "autoloco/v1/admin.pb.h"
#include "autoloco/v1/parameter_server.pb.h"
#include "common/base/byte_ranges.h"
#include "common/base/ids.h"
#include "server/core/events.h"
#include "server/rpc/rpc_context.h"
#include "server/runtime/calls.h"
#include "server/runtime/inputs.h"
#include "server/runtime/pull_answer.h"

namespace autoloco::server {

absl::StatusOr<SessionEvent> ToSessionEvent(const v1::WorkerMessage& message, Ticket session);
absl::StatusOr<PushOpened> ToPushOpened(const v1::PushHeader& header, const v1::RunConfig& run, Ticket ticket);
// The part of the payload that the stream brings, inside the payload.
absl::StatusOr<ByteRange> ToRange(const v1::PushHeader& header);
absl::StatusOr<PushStatusAsked> ToPushStatusAsked(const v1::PushStatusRequest& request, Ticket ticket);
absl::StatusOr<PullOpened> ToPullOpened(const v1::PullRequest& request, Ticket ticket);

v1::ServerMessage ToProto(const SessionMessage& message, const RpcContext& context);
v1::PushReply ToProto(PushOutcome outcome, const std::string& reason, bool replayed);
v1::PushStatusReply ToProto(const AnswerPushStatus& answer, const std::vector<ByteRange>& missing);
v1::PullHeader ToProto(const PullAnswer& answer);
v1::Status ToProto(const ServerStatus& status, const RpcContext& context);

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RPC_CONVERT_H_
