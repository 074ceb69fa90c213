#include "worker/client/pull_sink.h"

#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace autoloco::worker {
namespace {

// A block that does not decode is damage, whichever way the codec names it.
absl::Status AsDamage(const absl::Status& status) {
  if (status.ok()) return status;
  return absl::DataLossError(absl::StrCat("pull: ", status.message()));
}

std::span<const std::byte> Bytes(absl::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

}  // namespace

PullSink::PullSink(const PullPlan& plan, BaseBuffer* base)
    : plan_(plan),
      base_(base),
      splitter_(base->values().size(), plan.codec, plan.first_block, plan.end_block),
      next_live_(plan.first_block) {}

absl::Status PullSink::Take(const BulkFields& message) {
  const bool live = plan_.form == PullForm::kLive;
  if (live && message.kind == BulkKind::kLiveBlock) return TakeLive(message);
  if (!live && message.kind == BulkKind::kChunk) return TakeChunk(message);
  return absl::DataLossError("pull: another kind of message than the header says");
}

absl::Status PullSink::CheckWhole() const {
  const bool whole =
      plan_.form == PullForm::kLive ? next_live_ == plan_.end_block : splitter_.done() && taken_ == plan_.payload_bytes;
  if (whole) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("pull: it ended after ", taken_, " bytes"));
}

absl::Status PullSink::TakeChunk(const BulkFields& chunk) {
  if (chunk.offset != taken_ || chunk.data_bytes > plan_.payload_bytes - taken_) {
    return absl::DataLossError(absl::StrCat("pull: chunk at ", chunk.offset, " of ", chunk.data_bytes,
                                            " bytes, want offset ", taken_, " within ", plan_.payload_bytes));
  }
  taken_ += chunk.data_bytes;
  for (const absl::string_view piece : chunk.data) AUTOLOCO_RETURN_IF_ERROR(TakeBlocks(piece));
  return absl::OkStatus();
}

absl::Status PullSink::TakeBlocks(absl::string_view piece) {
  std::span<const std::byte> rest = Bytes(piece);
  while (true) {
    absl::StatusOr<std::optional<BlockSplitter::Block>> block = splitter_.Next(&rest);
    if (!block.ok()) return AsDamage(block.status());
    if (!block->has_value()) return absl::OkStatus();
    const BlockSplitter::Block& whole = **block;
    AUTOLOCO_RETURN_IF_ERROR(AsDamage(plan_.form == PullForm::kFull
                                          ? base_->Put(whole.index, plan_.version, whole.bytes, &decoder_)
                                          : base_->Add(whole.index, whole.bytes, plan_.codec, &decoder_)));
  }
}

absl::Status PullSink::TakeLive(const BulkFields& block) {
  if (block.block != next_live_ || next_live_ == plan_.end_block) {
    return absl::DataLossError(absl::StrCat("pull: live block ", block.block, ", want ", next_live_));
  }
  joined_.clear();
  for (const absl::string_view piece : block.data) joined_.append(piece.data(), piece.size());
  AUTOLOCO_RETURN_IF_ERROR(AsDamage(base_->Put(block.block, block.version, Bytes(joined_), &decoder_)));
  ++next_live_;
  taken_ += block.data_bytes;
  return absl::OkStatus();
}

}  // namespace autoloco::worker
