// Puts values into a base buffer as a pull of all of them would.
#ifndef AUTOLOCO_TESTS_SUPPORT_FILL_BASE_H_
#define AUTOLOCO_TESTS_SUPPORT_FILL_BASE_H_

#include <cstdint>
#include <span>
#include <string>

#include "common/base/check.h"
#include "common/codec/delta_codec.h"
#include "worker/runtime/base_buffer.h"

namespace autoloco::worker {

// The block `index` of `values` as it comes in a full or live transfer.
inline std::string CodedBlock(std::span<const float> values, std::uint64_t index) {
  std::string block;
  BlockEncoder(Codec::kFp32, 1)
      .Append(static_cast<std::uint32_t>(index), values.subspan(index * kBlockValues, BlockSize(values.size(), index)),
              &block);
  return block;
}

// REQUIRES: as many values as the base has.
inline void FillBase(std::span<const float> values, Version version, BaseBuffer* base) {
  BlockDecoder decoder;
  base->Begin(PullForm::kFull, version);
  for (std::uint64_t index = 0; index < base->block_count(); ++index) {
    AUTOLOCO_CHECK(
        base->Put(index, version, std::as_bytes(std::span<const char>(CodedBlock(values, index))), &decoder).ok());
  }
  base->End();
}

}  // namespace autoloco::worker

#endif  // AUTOLOCO_TESTS_SUPPORT_FILL_BASE_H_
