#include "worker/client/pull.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autoloco/v1/parameter_server.pb.h"
#include "common/base/byte_ranges.h"
#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/codec/delta_codec.h"
#include "common/rpc/bulk_call.h"
#include "common/rpc/bulk_message.h"
#include "common/rpc/status.h"
#include "worker/client/messages.h"
#include "worker/client/pull_header.h"
#include "worker/client/pull_sink.h"

namespace autoloco::worker {
namespace {

// Least blocks of a stream: of whole parameters about a MiB, of a quantized broadcast as much.
constexpr std::uint64_t kWholeBlocksMin = 4;
constexpr std::uint64_t kBroadcastBlocksMin = 64;

bool IsSameTransfer(const PullPlan& a, const PullPlan& b) {
  return a.form == b.form && (a.form == PullForm::kLive || a.version == b.version);
}

// One pull, over one stream or several, which all ask at once. What the first header to come says is transferred: a
// stream that is told of something else, since a commit came in between, asks for its blocks of that.
class PullStreams {
 public:
  // All borrowed.
  PullStreams(const std::vector<std::shared_ptr<grpc::Channel>>& channels, absl::string_view worker, const PullJob& job,
              Transfer* transfer)
      : channels_(channels),
        worker_(worker),
        job_(job),
        transfer_(transfer),
        held_(job.base->held()),
        request_(Request()) {}

  // Returns when all streams are over. OK: all that was asked for has come.
  absl::Status Run() {
    const std::vector<PullAsk> asks = Asks();
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < asks.size(); ++i) {
      others.emplace_back(
          [this, channel = channels_[i % channels_.size()].get(), ask = asks[i]] { Stream(channel, ask); });
    }
    Stream(channels_.front().get(), asks.front());
    for (std::thread& other : others) other.join();
    MutexLock lock(&mutex_);
    return transfer_->Finish(failure_);
  }

  // What is transferred; none: no header has come that fits. There after a Run that was OK.
  std::optional<PullPlan> plan() {
    MutexLock lock(&mutex_);
    return plan_;
  }

 private:
  // What came on one call.
  struct Received {
    bool header = false;
    bool other_transfer = false;   // the header was of another one than this pull's
    std::optional<PullSink> sink;  // where blocks were to come
  };

  v1::PullRequest Request() const {
    v1::PullRequest request;
    *request.mutable_identity() = ToProto(job_.identity, worker_);
    request.set_held_version(held_.version.value_or(0));
    request.set_held_digest(held_.digest);
    request.set_held_mixed(held_.mixed);
    request.set_header_only(job_.probe);
    return request;
  }

  // What the streams ask for.
  std::vector<PullAsk> Asks() const {
    const std::uint64_t blocks = job_.base->block_count();
    if (job_.probe) return {{.form = std::nullopt, .end_block = blocks}};
    PullAsk common;
    std::vector<ByteRange> missing = {{0, blocks}};
    if (const auto unfinished = job_.base->unfinished()) {
      common = {.form = unfinished->form, .version = unfinished->version};
      missing = job_.base->MissingBlocks();
    }
    const bool whole = !held_.version || job_.broadcast == Codec::kFp32;
    std::vector<PullAsk> asks;
    for (const ByteRange& range :
         SplitRanges(missing, channels_.size(), whole ? kWholeBlocksMin : kBroadcastBlocksMin)) {
      asks.push_back({common.form, common.version, range.first, range.end()});
    }
    return asks;
  }

  // One stream, from its request to its end; the first failure ends the others.
  void Stream(grpc::Channel* channel, const PullAsk& ask) {
    std::optional<PullAsk> next = ask;
    absl::Status status;
    while (status.ok() && next) status = Call(channel, *std::exchange(next, std::nullopt), &next);
    if (status.ok()) return;
    {
      MutexLock lock(&mutex_);
      if (failure_.ok()) failure_ = status;
    }
    transfer_->StopCalls();
  }

  // `next`: what has to be asked for after this, if anything.
  absl::Status Call(grpc::Channel* channel, const PullAsk& ask, std::optional<PullAsk>* next) {
    grpc::ClientContext context;
    AUTOLOCO_RETURN_IF_ERROR(transfer_->Begin(&context));
    v1::PullRequest request = request_;
    const bool all = ask.first_block == 0 && ask.end_block == job_.base->block_count();
    if (ask.form) request.mutable_part()->set_form(ToProto(*ask.form));
    if (ask.form) request.mutable_part()->set_version(ask.version);
    if (ask.form || !all) request.mutable_part()->set_first_block(ask.first_block);
    if (!all) request.mutable_part()->set_block_count(ask.end_block - ask.first_block);
    const auto reader = StartPull(channel, &context, request);
    Received received;
    const absl::Status read = ReadAll(reader.get(), ask, &received);
    if (!read.ok() || received.other_transfer) context.TryCancel();
    const absl::Status status = FromGrpcStatus(reader->Finish());
    transfer_->End(&context);
    AUTOLOCO_RETURN_IF_ERROR(read);
    if (received.other_transfer) {
      *next = SameBlocksOfThisTransfer(ask);
      return absl::OkStatus();
    }
    AUTOLOCO_RETURN_IF_ERROR(status);
    if (received.sink) return received.sink->CheckWhole();
    return received.header ? absl::OkStatus() : absl::DataLossError("pull: it ended without a header");
  }

  // OK with whatever came before the stream ended: its status tells why it did.
  absl::Status ReadAll(grpc::ClientReader<grpc::ByteBuffer>* reader, const PullAsk& ask, Received* received) {
    grpc::ByteBuffer buffer;
    ReceivedBulk message;
    if (!reader->Read(&buffer)) return absl::OkStatus();
    AUTOLOCO_RETURN_IF_ERROR(Parse(&buffer, &message));
    if (message.fields().kind != BulkKind::kHeader) return absl::DataLossError("pull: want a header first");
    v1::PullHeader header;
    AUTOLOCO_RETURN_IF_ERROR(message.ParseHeader(&header));
    AUTOLOCO_ASSIGN_OR_RETURN(const PullPlan plan, ReadPullHeader(header, job_, held_, ask));
    received->header = true;
    received->other_transfer = !Join(plan);
    if (received->other_transfer) return absl::OkStatus();
    if (BringsBlocks(plan)) received->sink.emplace(plan, job_.base);
    while (reader->Read(&buffer)) {
      AUTOLOCO_RETURN_IF_ERROR(Parse(&buffer, &message));
      if (!received->sink) return absl::DataLossError("pull: more than a header");
      transfer_->Moved(message.fields().data_bytes);
      AUTOLOCO_RETURN_IF_ERROR(received->sink->Take(message.fields()));
    }
    return absl::OkStatus();
  }

  static absl::Status Parse(grpc::ByteBuffer* buffer, ReceivedBulk* message) {
    const absl::Status status = message->Parse(buffer);
    return status.ok() ? status : absl::DataLossError(absl::StrCat("pull: ", status.message()));
  }

  bool BringsBlocks(const PullPlan& plan) const { return !job_.probe && plan.form != PullForm::kNothing; }

  // A stream's header has come: the transfer begins with the first one. False: it is of another transfer.
  bool Join(const PullPlan& plan) {
    MutexLock lock(&mutex_);
    if (plan_) return IsSameTransfer(*plan_, plan);
    plan_ = plan;
    if (BringsBlocks(plan)) job_.base->Begin(plan.form, plan.version);
    return true;
  }

  // None where no blocks are wanted: what is held is current by the first header.
  std::optional<PullAsk> SameBlocksOfThisTransfer(const PullAsk& ask) {
    const PullPlan transfer = *plan();
    if (!BringsBlocks(transfer)) return std::nullopt;
    return PullAsk{transfer.form, transfer.version, ask.first_block, ask.end_block};
  }

  const std::vector<std::shared_ptr<grpc::Channel>>& channels_;
  const absl::string_view worker_;
  const PullJob& job_;
  Transfer* const transfer_;
  const BaseBuffer::Held held_;    // when the pull began
  const v1::PullRequest request_;  // without a part

  Mutex mutex_;
  std::optional<PullPlan> plan_ ABSL_GUARDED_BY(mutex_);  // of the first header that came
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);          // the first
};

// The pull is over: what the base holds now.
absl::Status Conclude(const PullJob& job, const std::optional<PullPlan>& transfer, const absl::Status& status,
                      PullEnded* ended) {
  const bool asked_for_rest = !job.probe && job.base->unfinished().has_value();
  if (!job.probe && transfer && transfer->form != PullForm::kNothing) job.base->End();
  if (asked_for_rest && absl::IsAborted(status)) job.base->Abandon();
  AUTOLOCO_RETURN_IF_ERROR(status);
  const PullPlan& plan = *transfer;
  ended->form = plan.form;
  ended->version = plan.version;
  ended->digest = plan.view_digest;
  if (job.probe) {
    ended->confirmed = plan.form == PullForm::kNothing;
    return absl::OkStatus();
  }
  const BaseBuffer::Held& held = job.base->held();
  const bool checkable = plan.form != PullForm::kLive && !held.digest.empty();
  if (checkable && held.digest != plan.view_digest) {
    return absl::DataLossError(
        absl::StrCat("version ", plan.version, ": want digest ", plan.view_digest, ", got ", held.digest));
  }
  ended->confirmed = checkable;
  ended->version = held.version.value_or(plan.version);
  ended->digest = held.digest;
  return absl::OkStatus();
}

}  // namespace

PullEnded RunPull(const std::vector<std::shared_ptr<grpc::Channel>>& channels, absl::string_view worker,
                  const PullJob& job, Transfer* transfer) {
  AUTOLOCO_CHECK(!channels.empty());
  PullEnded ended{.ticket = job.ticket, .status = absl::OkStatus(), .probe = job.probe};
  PullStreams streams(channels, worker, job, transfer);
  const absl::Status status = streams.Run();
  ended.status = Conclude(job, streams.plan(), status, &ended);
  return ended;
}

}  // namespace autoloco::worker
