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

// One pull, over one stream or several.
class PullStreams {
 public:
  // All borrowed.
  PullStreams(const std::vector<std::shared_ptr<grpc::Channel>>& channels, absl::string_view worker, const PullJob& job,
              Transfer* transfer)
      : channels_(channels), worker_(worker), job_(job), transfer_(transfer), request_(Request()) {}

  // Returns when all streams are over. OK: all that was asked for has come.
  absl::Status Run() {
    const std::vector<PullAsk> asks = Asks();
    shares_.assign(asks.begin() + 1, asks.end());
    const absl::Status lead = Stream(0, asks.front());
    for (std::thread& other : others_) other.join();
    MutexLock lock(&mutex_);
    return transfer_->Finish(failure_.ok() ? lead : failure_);
  }

  // Of the first header; none: it has not come, or does not fit.
  const std::optional<PullPlan>& plan() const { return plan_; }
  // Whether blocks were to come into the base.
  bool began() const { return began_; }

 private:
  v1::PullRequest Request() const {
    v1::PullRequest request;
    *request.mutable_identity() = ToProto(job_.identity, worker_);
    const BaseBuffer::Held& held = job_.base->held();
    request.set_held_version(held.version.value_or(0));
    request.set_held_digest(held.digest);
    request.set_held_mixed(held.mixed);
    request.set_header_only(job_.probe);
    return request;
  }

  // What the streams ask for, the first one first.
  std::vector<PullAsk> Asks() const {
    const std::uint64_t blocks = job_.base->block_count();
    if (job_.probe) return {{.form = std::nullopt, .end_block = blocks}};
    PullAsk common;
    std::vector<ByteRange> missing = {{0, blocks}};
    if (const auto unfinished = job_.base->unfinished()) {
      common = {.form = unfinished->form, .version = unfinished->version};
      missing = job_.base->MissingBlocks();
    }
    const bool whole = !job_.base->held().version || job_.broadcast == Codec::kFp32;
    std::vector<PullAsk> asks;
    for (const ByteRange& range :
         SplitRanges(missing, channels_.size(), whole ? kWholeBlocksMin : kBroadcastBlocksMin)) {
      asks.push_back({common.form, common.version, range.first, range.end()});
    }
    return asks;
  }

  // One stream, from its request to its end; then the first failure ends the others.
  absl::Status Stream(std::size_t index, const PullAsk& ask) {
    absl::Status status = Call(index, ask);
    if (!status.ok()) {
      {
        MutexLock lock(&mutex_);
        if (failure_.ok()) failure_ = status;
      }
      transfer_->StopCalls();
    }
    return status;
  }

  absl::Status Call(std::size_t index, const PullAsk& ask) {
    grpc::ClientContext context;
    AUTOLOCO_RETURN_IF_ERROR(transfer_->Begin(&context));
    v1::PullRequest request = request_;
    const bool all = ask.first_block == 0 && ask.end_block == job_.base->block_count();
    if (ask.form) request.mutable_part()->set_form(ToProto(*ask.form));
    if (ask.form) request.mutable_part()->set_version(ask.version);
    if (ask.form || !all) request.mutable_part()->set_first_block(ask.first_block);
    if (!all) request.mutable_part()->set_block_count(ask.end_block - ask.first_block);
    const auto reader = StartPull(channels_[index % channels_.size()].get(), &context, request);
    std::optional<PullSink> sink;
    absl::Status read = ReadAll(reader.get(), index, ask, &sink);
    if (!read.ok()) context.TryCancel();
    const absl::Status status = FromGrpcStatus(reader->Finish());
    transfer_->End(&context);
    AUTOLOCO_RETURN_IF_ERROR(read.ok() ? status : read);
    if (sink) return sink->CheckWhole();
    return index == 0 && plan_ ? absl::OkStatus() : absl::DataLossError("pull: it ended without a header");
  }

  // OK with whatever came before the stream ended: its status tells why it did.
  absl::Status ReadAll(grpc::ClientReader<grpc::ByteBuffer>* reader, std::size_t index, const PullAsk& ask,
                       std::optional<PullSink>* sink) {
    grpc::ByteBuffer buffer;
    ReceivedBulk message;
    if (!reader->Read(&buffer)) return absl::OkStatus();
    AUTOLOCO_RETURN_IF_ERROR(Parse(&buffer, &message));
    if (message.fields().kind != BulkKind::kHeader) return absl::DataLossError("pull: want a header first");
    v1::PullHeader header;
    AUTOLOCO_RETURN_IF_ERROR(message.ParseHeader(&header));
    AUTOLOCO_ASSIGN_OR_RETURN(const PullPlan plan, ReadPullHeader(header, job_, ask));
    if (index == 0) Lead(plan);
    if (began_) sink->emplace(plan, job_.base);
    while (reader->Read(&buffer)) {
      AUTOLOCO_RETURN_IF_ERROR(Parse(&buffer, &message));
      if (!*sink) return absl::DataLossError("pull: more than a header");
      transfer_->Moved(message.fields().data_bytes);
      AUTOLOCO_RETURN_IF_ERROR((*sink)->Take(message.fields()));
    }
    return absl::OkStatus();
  }

  static absl::Status Parse(grpc::ByteBuffer* buffer, ReceivedBulk* message) {
    const absl::Status status = message->Parse(buffer);
    return status.ok() ? status : absl::DataLossError(absl::StrCat("pull: ", status.message()));
  }

  // The first stream's header has come: the transfer begins, and the others ask for their shares.
  void Lead(const PullPlan& plan) {
    plan_ = plan;
    if (job_.probe || plan.form == PullForm::kNothing) return;
    began_ = true;
    job_.base->Begin(plan.form, plan.version);
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      PullAsk ask = shares_[i];
      ask.form = plan.form;
      ask.version = plan.version;
      others_.emplace_back([this, i, ask] { Stream(i + 1, ask).IgnoreError(); });
    }
  }

  const std::vector<std::shared_ptr<grpc::Channel>>& channels_;
  const absl::string_view worker_;
  const PullJob& job_;
  Transfer* const transfer_;
  const v1::PullRequest request_;  // without a part

  // Of the first stream's thread, and constant once the others run.
  std::vector<PullAsk> shares_;  // of the others
  std::optional<PullPlan> plan_;
  bool began_ = false;
  std::vector<std::thread> others_;

  Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // the first
};

// The pull is over: what the base holds now.
absl::Status Conclude(const PullJob& job, const PullStreams& streams, const absl::Status& status, PullEnded* ended) {
  const bool asked_for_rest = !job.probe && job.base->unfinished().has_value();
  if (!job.probe && streams.began()) job.base->End();
  if (asked_for_rest && absl::IsAborted(status)) job.base->Abandon();
  AUTOLOCO_RETURN_IF_ERROR(status);
  const PullPlan& plan = *streams.plan();
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
  ended.status = Conclude(job, streams, status, &ended);
  return ended;
}

}  // namespace autoloco::worker
