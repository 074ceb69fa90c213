#include "worker/client/push.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <memory>
#include <string>

#include "common/base/status_macros.h"
#include "common/rpc/deadline.h"
#include "common/rpc/protocol.h"
#include "common/rpc/status.h"
#include "worker/client/messages.h"

namespace autoloco::worker {
namespace {

// False when the server has answered early or the stream broke: Finish tells which.
bool WriteAll(grpc::ClientWriter<v1::PushRequest>* writer, absl::string_view worker, const PushJob& job,
              Transfer* transfer) {
  v1::PushRequest request;
  *request.mutable_header() = PushHeaderMessage(job, worker);
  if (!writer->Write(request)) return false;
  const std::string& payload = job.delta->payload;
  for (std::size_t offset = 0; offset < payload.size(); offset += kChunkBytes) {
    const std::size_t size = std::min(kChunkBytes, payload.size() - offset);
    request.mutable_chunk()->set_offset(offset);
    request.mutable_chunk()->set_data(payload.data() + offset, size);
    if (!writer->Write(request)) return false;
    transfer->Moved(size);
  }
  return writer->WritesDone();
}

absl::Status Push(v1::ParameterServer::Stub* stub, absl::string_view worker, const PushJob& job, Transfer* transfer,
                  PushEnded* ended) {
  grpc::ClientContext context;
  AUTOLOCO_RETURN_IF_ERROR(transfer->Begin(&context));
  v1::PushReply reply;
  const std::unique_ptr<grpc::ClientWriter<v1::PushRequest>> writer = stub->Push(&context, &reply);
  WriteAll(writer.get(), worker, job, transfer);
  AUTOLOCO_RETURN_IF_ERROR(transfer->Finish(FromGrpcStatus(writer->Finish())));
  AUTOLOCO_ASSIGN_OR_RETURN(ended->outcome, ToOutcome(reply.outcome()));
  ended->reason = reply.reason();
  return absl::OkStatus();
}

absl::Status Ask(v1::ParameterServer::Stub* stub, absl::string_view worker, const PushQuestion& question,
                 absl::Duration timeout, Transfer* transfer, PushStatusEnded* ended) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(timeout));
  AUTOLOCO_RETURN_IF_ERROR(transfer->Begin(&context));
  v1::PushStatusRequest request;
  *request.mutable_identity() = ToProto(question.identity, worker);
  request.set_round(question.round);
  v1::PushStatusReply reply;
  AUTOLOCO_RETURN_IF_ERROR(transfer->Finish(FromGrpcStatus(stub->PushStatus(&context, request, &reply))));
  ended->known = reply.known();
  if (!ended->known) return absl::OkStatus();
  AUTOLOCO_ASSIGN_OR_RETURN(ended->outcome, ToOutcome(reply.reply().outcome()));
  ended->reason = reply.reply().reason();
  return absl::OkStatus();
}

}  // namespace

PushEnded RunPush(v1::ParameterServer::Stub* stub, absl::string_view worker, const PushJob& job, Transfer* transfer) {
  PushEnded ended{.ticket = job.ticket, .status = absl::OkStatus(), .outcome = PushOutcome::kAccepted, .reason = ""};
  ended.status = Push(stub, worker, job, transfer, &ended);
  return ended;
}

PushStatusEnded RunPushStatus(v1::ParameterServer::Stub* stub, absl::string_view worker, const PushQuestion& question,
                              absl::Duration timeout, Transfer* transfer) {
  PushStatusEnded ended{.ticket = question.ticket,
                        .status = absl::OkStatus(),
                        .known = false,
                        .outcome = PushOutcome::kAccepted,
                        .reason = ""};
  ended.status = Ask(stub, worker, question, timeout, transfer, &ended);
  return ended;
}

}  // namespace autoloco::worker
