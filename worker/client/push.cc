#include "worker/client/push.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/rpc/bulk_call.h"
#include "common/rpc/bulk_message.h"
#include "common/rpc/deadline.h"
#include "common/rpc/protocol.h"
#include "common/rpc/status.h"
#include "worker/client/messages.h"

namespace autoloco::worker {
namespace {

// The streams of one push: the first answer is everybody's, and so is the first failure.
class PushStreams {
 public:
  // All borrowed.
  PushStreams(absl::string_view worker, const PushJob& job, Transfer* transfer)
      : worker_(worker), job_(job), transfer_(transfer) {}

  // Sends each range on a stream of its own; returns when all are over. REQUIRES: neither is empty.
  absl::Status Run(const std::vector<std::shared_ptr<grpc::Channel>>& channels, const std::vector<ByteRange>& ranges) {
    AUTOLOCO_CHECK(!channels.empty());
    AUTOLOCO_CHECK(!ranges.empty());
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < ranges.size(); ++i) {
      others.emplace_back(
          [this, channel = channels[i % channels.size()].get(), range = ranges[i]] { Send(channel, range); });
    }
    Send(channels[0].get(), ranges[0]);
    for (std::thread& other : others) other.join();
    MutexLock lock(&mutex_);
    return reply_.has_value() ? absl::OkStatus() : failure_;
  }

  // REQUIRES: Run was OK.
  v1::PushReply reply() {
    MutexLock lock(&mutex_);
    return *reply_;
  }

 private:
  void Send(grpc::Channel* channel, const ByteRange& range) {
    grpc::ClientContext context;
    v1::PushReply reply;
    absl::Status status = transfer_->Begin(&context);
    if (status.ok()) {
      const auto writer = StartPush(channel, &context, &reply);
      WriteAll(writer.get(), range);
      status = FromGrpcStatus(writer->Finish());
      transfer_->End(&context);
    }
    {
      MutexLock lock(&mutex_);
      if (status.ok()) {
        reply_ = reply;
      } else if (failure_.ok()) {
        failure_ = status;
      }
    }
    transfer_->StopCalls();
  }

  // Stops when the server has answered early or the stream broke: Finish tells which.
  void WriteAll(grpc::ClientWriter<grpc::ByteBuffer>* writer, const ByteRange& range) {
    v1::PushHeader header = PushHeaderMessage(job_, worker_);
    header.set_first_byte(range.first);
    header.set_byte_count(range.count);
    if (!writer->Write(MakeHeaderMessage(header))) return;
    const absl::string_view bytes = absl::string_view(job_.delta->payload).substr(range.first, range.count);
    for (std::size_t offset = 0; offset < bytes.size(); offset += kChunkBytes) {
      const absl::string_view chunk = bytes.substr(offset, kChunkBytes);
      if (!writer->Write(MakeChunkMessage(offset, chunk, job_.delta))) return;
      transfer_->Moved(chunk.size());
    }
    writer->WritesDone();
  }

  const absl::string_view worker_;
  const PushJob& job_;
  Transfer* const transfer_;
  Mutex mutex_;
  std::optional<v1::PushReply> reply_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // the first
};

// What has to be sent; all of it when what the server says it lacks is no part of the payload.
std::vector<ByteRange> RangesToSend(const PushRoute& route, std::uint64_t payload_bytes) {
  const auto fits = [&](const ByteRange& range) {
    return range.first <= payload_bytes && range.count <= payload_bytes - range.first;
  };
  std::vector<ByteRange> ranges = {{0, payload_bytes}};
  if (!route.missing.empty() && std::all_of(route.missing.begin(), route.missing.end(), fits)) ranges = route.missing;
  std::vector<ByteRange> pieces = SplitRanges(ranges, route.channels.size(), kStreamBytesMin);
  if (pieces.empty()) pieces.push_back({payload_bytes, 0});  // all is there: only the answer is wanted
  return pieces;
}

absl::Status Push(const PushRoute& route, absl::string_view worker, const PushJob& job, Transfer* transfer,
                  PushEnded* ended) {
  PushStreams streams(worker, job, transfer);
  const absl::Status status = streams.Run(route.channels, RangesToSend(route, job.delta->payload.size()));
  AUTOLOCO_RETURN_IF_ERROR(transfer->Finish(status));
  const v1::PushReply reply = streams.reply();
  AUTOLOCO_ASSIGN_OR_RETURN(ended->outcome, ToOutcome(reply.outcome()));
  ended->reason = reply.reason();
  return absl::OkStatus();
}

absl::Status Ask(v1::ParameterServer::Stub* stub, absl::string_view worker, const PushQuestion& question,
                 absl::Duration timeout, Transfer* transfer, PushStatusEnded* ended, std::vector<ByteRange>* missing) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(timeout));
  AUTOLOCO_RETURN_IF_ERROR(transfer->Begin(&context));
  v1::PushStatusRequest request;
  *request.mutable_identity() = ToProto(question.identity, worker);
  request.set_round(question.round);
  v1::PushStatusReply reply;
  AUTOLOCO_RETURN_IF_ERROR(transfer->Finish(FromGrpcStatus(stub->PushStatus(&context, request, &reply))));
  ended->known = reply.known();
  missing->clear();
  for (const v1::ByteRange& range : reply.missing()) missing->push_back({range.first_byte(), range.byte_count()});
  if (!ended->known) return absl::OkStatus();
  AUTOLOCO_ASSIGN_OR_RETURN(ended->outcome, ToOutcome(reply.reply().outcome()));
  ended->reason = reply.reply().reason();
  return absl::OkStatus();
}

}  // namespace

PushEnded RunPush(const PushRoute& route, absl::string_view worker, const PushJob& job, Transfer* transfer) {
  PushEnded ended{.ticket = job.ticket, .status = absl::OkStatus(), .outcome = PushOutcome::kAccepted, .reason = ""};
  ended.status = Push(route, worker, job, transfer, &ended);
  return ended;
}

PushStatusEnded RunPushStatus(v1::ParameterServer::Stub* stub, absl::string_view worker, const PushQuestion& question,
                              absl::Duration timeout, Transfer* transfer, std::vector<ByteRange>* missing) {
  PushStatusEnded ended{.ticket = question.ticket,
                        .status = absl::OkStatus(),
                        .known = false,
                        .outcome = PushOutcome::kAccepted,
                        .reason = ""};
  ended.status = Ask(stub, worker, question, timeout, transfer, &ended, missing);
  return ended;
}

}  // namespace autoloco::worker
