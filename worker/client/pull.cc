#include "worker/client/pull.h"

#include <grpcpp/client_context.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/codec/block_splitter.h"
#include "common/codec/delta_codec.h"
#include "common/rpc/status.h"
#include "worker/client/messages.h"
#include "worker/client/pull_header.h"

namespace autoloco::worker {
namespace {

// A block that does not decode is damage, whichever way the codec names it.
absl::Status AsDamage(const absl::Status& status) {
  if (status.ok()) return status;
  return absl::DataLossError(absl::StrCat("pull: ", status.message()));
}

// Takes the payload of one stream into the base.
class PullSink {
 public:
  PullSink(const PullPlan& plan, BaseBuffer* base)
      : plan_(plan),
        base_(base),
        splitter_(base->values().size(), plan.codec, plan.first_block, plan.end_block),
        next_live_(plan.first_block) {}

  absl::Status Take(const v1::PullReply& reply) {
    if (plan_.form == PullForm::kLive && reply.has_live_block()) return TakeLive(reply.live_block());
    if (plan_.form != PullForm::kLive && reply.has_chunk()) return TakeChunk(reply.chunk());
    return absl::DataLossError("pull: another kind of message than the header says");
  }
  // DATA_LOSS: blocks are missing.
  absl::Status CheckWhole() const {
    const bool whole = plan_.form == PullForm::kLive ? next_live_ == plan_.end_block
                                                     : splitter_.done() && taken_ == plan_.payload_bytes;
    if (whole) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("pull: it ended after ", taken_, " bytes"));
  }

 private:
  absl::Status TakeChunk(const v1::Chunk& chunk) {
    if (chunk.offset() != taken_ || chunk.data().size() > plan_.payload_bytes - taken_) {
      return absl::DataLossError(absl::StrCat("pull: chunk at ", chunk.offset(), " of ", chunk.data().size(),
                                              " bytes, want offset ", taken_, " within ", plan_.payload_bytes));
    }
    taken_ += chunk.data().size();
    std::span<const std::byte> piece = std::as_bytes(std::span(chunk.data()));
    while (true) {
      absl::StatusOr<std::optional<BlockSplitter::Block>> block = splitter_.Next(&piece);
      if (!block.ok()) return AsDamage(block.status());
      if (!block->has_value()) return absl::OkStatus();
      const BlockSplitter::Block& whole = **block;
      AUTOLOCO_RETURN_IF_ERROR(AsDamage(plan_.form == PullForm::kFull
                                            ? base_->Put(whole.index, plan_.version, whole.bytes, &decoder_)
                                            : base_->Add(whole.index, whole.bytes, plan_.codec, &decoder_)));
    }
  }
  absl::Status TakeLive(const v1::LiveBlock& block) {
    if (block.block() != next_live_ || next_live_ == plan_.end_block) {
      return absl::DataLossError(absl::StrCat("pull: live block ", block.block(), ", want ", next_live_));
    }
    AUTOLOCO_RETURN_IF_ERROR(
        AsDamage(base_->Put(block.block(), block.version(), std::as_bytes(std::span(block.data())), &decoder_)));
    ++next_live_;
    taken_ += block.data().size();
    return absl::OkStatus();
  }

  const PullPlan plan_;
  BaseBuffer* const base_;
  BlockSplitter splitter_;
  BlockDecoder decoder_;
  std::uint64_t next_live_;
  std::uint64_t taken_ = 0;  // payload bytes
};

// One call under way.
class PullCall {
 public:
  PullCall(absl::string_view worker, const PullJob& job, Transfer* transfer, PullEnded* ended)
      : worker_(worker), job_(job), transfer_(transfer), ended_(ended) {
    if (!job.probe) part_ = job.base->unfinished();
  }

  absl::Status Run(v1::ParameterServer::Stub* stub) {
    grpc::ClientContext context;
    AUTOLOCO_RETURN_IF_ERROR(transfer_->Begin(&context));
    const std::unique_ptr<grpc::ClientReader<v1::PullReply>> reader = stub->Pull(&context, Request());
    const absl::Status read = ReadReplies(reader.get());
    if (!read.ok()) context.TryCancel();
    const absl::Status status = FromGrpcStatus(reader->Finish());
    return transfer_->Finish(read.ok() ? status : read);
  }

  // The call is over: what the base holds now.
  absl::Status Conclude(absl::Status status) {
    if (part_ && absl::IsAborted(status)) job_.base->Abandon();
    if (job_.probe) {
      if (status.ok() && !plan_) status = absl::DataLossError("pull: it ended without a header");
      if (status.ok()) Report(plan_->form == PullForm::kNothing, plan_->view_digest);
      return status;
    }
    if (sink_) job_.base->End();
    AUTOLOCO_RETURN_IF_ERROR(status);
    if (!plan_) return absl::DataLossError("pull: it ended without a header");
    if (sink_) AUTOLOCO_RETURN_IF_ERROR(sink_->CheckWhole());
    const BaseBuffer::Held& held = job_.base->held();
    const bool checkable = plan_->form != PullForm::kLive && !held.digest.empty();
    if (checkable && held.digest != plan_->view_digest) {
      return absl::DataLossError(
          absl::StrCat("version ", plan_->version, ": want digest ", plan_->view_digest, ", got ", held.digest));
    }
    Report(checkable, held.digest);
    ended_->version = held.version.value_or(plan_->version);
    return absl::OkStatus();
  }

 private:
  v1::PullRequest Request() const {
    v1::PullRequest request;
    *request.mutable_identity() = ToProto(job_.identity, worker_);
    const BaseBuffer::Held& held = job_.base->held();
    request.set_held_version(held.version.value_or(0));
    request.set_held_digest(held.digest);
    request.set_held_mixed(held.mixed);
    request.set_header_only(job_.probe);
    if (part_) {
      request.mutable_part()->set_form(ToProto(part_->form));
      request.mutable_part()->set_version(part_->version);
      request.mutable_part()->set_first_block(part_->first_block);
    }
    return request;
  }

  // OK with whatever came before the stream ended: its status tells why it did.
  absl::Status ReadReplies(grpc::ClientReader<v1::PullReply>* reader) {
    v1::PullReply reply;
    if (!reader->Read(&reply)) return absl::OkStatus();
    if (!reply.has_header()) return absl::DataLossError("pull: want a header first");
    AUTOLOCO_ASSIGN_OR_RETURN(plan_, ReadPullHeader(reply.header(), job_, part_));
    if (!job_.probe && plan_->form != PullForm::kNothing) {
      job_.base->Begin(plan_->form, plan_->version);
      sink_.emplace(*plan_, job_.base);
    }
    while (reader->Read(&reply)) {
      if (!sink_) return absl::DataLossError("pull: more than a header");
      transfer_->Moved(reply.has_chunk() ? reply.chunk().data().size() : reply.live_block().data().size());
      AUTOLOCO_RETURN_IF_ERROR(sink_->Take(reply));
    }
    return absl::OkStatus();
  }

  void Report(bool confirmed, const std::string& digest) {
    ended_->form = plan_->form;
    ended_->confirmed = confirmed;
    ended_->version = plan_->version;
    ended_->digest = digest;
  }

  const absl::string_view worker_;
  const PullJob& job_;
  Transfer* const transfer_;
  PullEnded* const ended_;
  std::optional<BaseBuffer::Unfinished> part_;  // asked for
  std::optional<PullPlan> plan_;                // once the header has come
  std::optional<PullSink> sink_;                // once blocks may come
};

}  // namespace

PullEnded RunPull(v1::ParameterServer::Stub* stub, absl::string_view worker, const PullJob& job, Transfer* transfer) {
  PullEnded ended{.ticket = job.ticket, .status = absl::OkStatus(), .probe = job.probe};
  PullCall call(worker, job, transfer, &ended);
  ended.status = call.Conclude(call.Run(stub));
  return ended;
}

}  // namespace autoloco::worker
