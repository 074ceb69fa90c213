#include "server/runtime/parameter_store.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/codec/delta_codec.h"

namespace autoloco::server {

ParameterStore::ParameterStore(const Layout& layout, FlatBuffer params, FlatBuffer momentum)
    : layout_(layout), params_(std::move(params)), momentum_(std::move(momentum)) {}

absl::StatusOr<ParameterStore> ParameterStore::Allocate(const Layout& layout) {
  AUTOLOCO_ASSIGN_OR_RETURN(FlatBuffer params, FlatBuffer::Allocate(layout.value_count()));
  AUTOLOCO_ASSIGN_OR_RETURN(FlatBuffer momentum, FlatBuffer::Allocate(layout.value_count()));
  return ParameterStore(layout, std::move(params), std::move(momentum));
}

absl::Status ParameterStore::MakeView() {
  if (view_ != nullptr) return absl::OkStatus();
  AUTOLOCO_ASSIGN_OR_RETURN(view_, LiveView::Allocate(layout_.value_count()));
  const std::span<const float> params = params_.values();
  std::copy(params.begin(), params.end(), view_->values().begin());
  return absl::OkStatus();
}

std::string ParameterStore::ParamsDigest() const { return Digest128(params_.values()); }

std::string ParameterStore::ViewDigest() const {
  return view_ == nullptr ? ParamsDigest() : Digest128(std::span<const float>(view_->values()));
}

std::shared_ptr<const EncodedPayload> ParameterStore::Encode(Version version, std::string params_digest, int zstd_level,
                                                             WorkPool* pool) const {
  const std::span<const float> params = params_.values();
  const std::uint64_t block_count = BlockCount(params.size());
  std::vector<std::string> blocks(block_count);
  std::vector<std::unique_ptr<BlockEncoder>> encoders(pool->thread_count());
  const auto encode = [&](std::size_t index, std::size_t slot) {
    if (encoders[slot] == nullptr) encoders[slot] = std::make_unique<BlockEncoder>(Codec::kFp32, zstd_level);
    encoders[slot]->Append(static_cast<std::uint32_t>(index),
                           params.subspan(index * kBlockValues, BlockSize(params.size(), index)), &blocks[index]);
  };
  pool->ParallelFor(block_count, encode);
  EncodedPayload::Header header{PullForm::kFull, version, std::move(params_digest), Codec::kFp32};
  return std::make_shared<const EncodedPayload>(std::move(header), std::move(blocks));
}

}  // namespace autoloco::server
