#include "worker/runtime/base_buffer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"

namespace autoloco::worker {

absl::StatusOr<BaseBuffer> BaseBuffer::Allocate(std::uint64_t value_count) {
  AUTOLOCO_ASSIGN_OR_RETURN(FlatBuffer values, FlatBuffer::Allocate(value_count));
  return BaseBuffer(std::move(values), BlockCount(value_count));
}

std::span<float> BaseBuffer::BlockAt(std::uint64_t index) {
  AUTOLOCO_CHECK(index < versions_.size());
  return values_.values().subspan(index * kBlockValues, BlockSize(values_.size(), index));
}

bool BaseBuffer::IsMissing(std::uint64_t index) const {
  return form_ == PullForm::kBroadcast ? versions_[index] < version_ : versions_[index] == kNone;
}

std::optional<BaseBuffer::Unfinished> BaseBuffer::unfinished() const {
  if (form_ == PullForm::kNothing) return std::nullopt;
  for (std::uint64_t index = 0; index < versions_.size(); ++index) {
    if (IsMissing(index)) return Unfinished{.form = form_, .version = version_, .first_block = index};
  }
  return std::nullopt;
}

std::vector<ByteRange> BaseBuffer::MissingBlocks() const {
  std::vector<ByteRange> missing;
  if (form_ == PullForm::kNothing) return missing;
  for (std::uint64_t index = 0; index < versions_.size(); ++index) {
    if (!IsMissing(index)) continue;
    if (missing.empty() || missing.back().end() != index) missing.push_back({index, 0});
    ++missing.back().count;
  }
  return missing;
}

void BaseBuffer::Begin(PullForm form, Version version) {
  AUTOLOCO_CHECK(form != PullForm::kNothing);
  const bool goes_on = form == form_ && (version == version_ || form == PullForm::kLive);
  held_.digest.clear();
  form_ = form;
  version_ = version;
  if (goes_on || form == PullForm::kBroadcast) return;
  std::fill(versions_.begin(), versions_.end(), kNone);
  held_ = Held();
}

absl::Status BaseBuffer::Put(std::uint64_t index, Version version, std::span<const std::byte> block,
                             BlockDecoder* decoder) {
  AUTOLOCO_CHECK(form_ == PullForm::kFull || form_ == PullForm::kLive);
  if (version == kNone) return absl::InvalidArgumentError(absl::StrCat("block ", index, " is of no version"));
  AUTOLOCO_RETURN_IF_ERROR(decoder->Decode(block, Codec::kFp32, static_cast<std::uint32_t>(index), BlockAt(index)));
  versions_[index] = version;
  return absl::OkStatus();
}

absl::Status BaseBuffer::Add(std::uint64_t index, std::span<const std::byte> block, Codec codec,
                             BlockDecoder* decoder) {
  AUTOLOCO_CHECK(form_ == PullForm::kBroadcast);
  const std::span<float> values = BlockAt(index);
  if (versions_[index] == kNone || versions_[index] + 1 < version_) {
    return absl::FailedPreconditionError(
        absl::StrCat("block ", index, " is too old for the broadcast of version ", version_));
  }
  if (versions_[index] >= version_) return absl::OkStatus();
  AUTOLOCO_RETURN_IF_ERROR(decoder->DecodeAdd(block, codec, static_cast<std::uint32_t>(index), 1, values));
  versions_[index] = version_;
  return absl::OkStatus();
}

void BaseBuffer::End() {
  held_ = Held();
  if (!unfinished()) form_ = PullForm::kNothing;
  const auto [oldest, newest] = std::minmax_element(versions_.begin(), versions_.end());
  if (oldest == versions_.end() || *newest == kNone) return;
  held_.version = *oldest;
  held_.mixed = *oldest != *newest;
  if (!held_.mixed) held_.digest = Digest128(values());
}

void BaseBuffer::Abandon() {
  if (form_ == PullForm::kNothing) return;
  form_ = PullForm::kNothing;
  if (held_.version) return;
  std::fill(versions_.begin(), versions_.end(), kNone);
}

}  // namespace autoloco::worker
