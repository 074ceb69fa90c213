#include "server/runtime/parameter_store.h"

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

std::string ParameterStore::ParamsDigest() const { return Digest128(params_.values()); }

std::shared_ptr<const EncodedSnapshot> ParameterStore::Encode(Version version, std::string params_digest,
                                                              int zstd_level, WorkPool* pool) const {
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
  EncodedSnapshot::Header header{version, std::move(params_digest), layout_.hash(), params.size()};
  return std::make_shared<const EncodedSnapshot>(std::move(header), std::move(blocks));
}

}  // namespace autoloco::server
