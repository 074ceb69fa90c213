#include "tests/sim/base.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/codec/delta_codec.h"
#include "tests/sim/convert.h"

namespace autoloco::sim {

void Base::Describe(server::PullOpened* pull) const {
  pull->held_version = oldest_.value_or(0);
  pull->held_digest = digest_;
  pull->held_mixed = mixed_;
  if (!unfinished_) return;
  pull->part = {.form = unfinished_->form, .version = unfinished_->version, .first_block = *FirstMissing()};
}

worker::PullEnded Base::Compare(const PullReply& reply) const {
  return {.status = absl::OkStatus(),
          .probe = true,
          .form = ToWorkerForm(reply.form),
          .confirmed = reply.form == server::PullForm::kNothing,
          .version = reply.version,
          .digest = reply.view_digest};
}

bool Base::IsMissing(std::size_t block) const {
  if (unfinished_->form != server::PullForm::kBroadcast) return !versions_[block];
  return *versions_[block] < unfinished_->version;
}

std::optional<std::size_t> Base::FirstMissing() const {
  for (std::size_t block = 0; block < kBlocks; ++block) {
    if (IsMissing(block)) return block;
  }
  return std::nullopt;
}

void Base::Begin(server::PullForm form, Version version) {
  const bool goes_on =
      unfinished_ && unfinished_->form == form && (unfinished_->version == version || form == server::PullForm::kLive);
  unfinished_ = Transfer{form, version};
  if (!goes_on && form != server::PullForm::kBroadcast) versions_.assign(kBlocks, std::nullopt);
}

absl::Status Base::TakeBlock(std::size_t block, const PulledBlock& pulled) {
  if (block >= kBlocks) return absl::DataLossError("a block too many");
  const std::span<float> values = std::span(values_).subspan(block * kBlockSize, kBlockSize);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(pulled.bytes));
  const auto index = static_cast<std::uint32_t>(block);
  BlockDecoder decoder;
  if (unfinished_->form != server::PullForm::kBroadcast) {
    AUTOLOCO_RETURN_IF_ERROR(decoder.Decode(bytes, Codec::kFp32, index, values));
    versions_[block] = pulled.version;
    return absl::OkStatus();
  }
  if (*versions_[block] >= unfinished_->version && !careless_) return absl::OkStatus();
  AUTOLOCO_RETURN_IF_ERROR(decoder.DecodeAdd(bytes, broadcast_.codec, index, 1, values));
  versions_[block] = std::max(*versions_[block], unfinished_->version);
  return absl::OkStatus();
}

void Base::Conclude() {
  if (unfinished_ && !FirstMissing()) unfinished_.reset();
  const auto [oldest, newest] = std::minmax_element(versions_.begin(), versions_.end());  // none is the least
  oldest_ = *oldest;
  mixed_ = oldest_ && *oldest != *newest;
  digest_ = oldest_ && !mixed_ ? DigestOf(values_) : "";
}

worker::PullEnded Base::Take(const PullReply& reply) {
  worker::PullEnded ended{.status = reply.status, .form = ToWorkerForm(reply.form), .version = reply.version};
  if (reply.form == server::PullForm::kNothing) {
    if (!oldest_ || reply.version != *oldest_ || reply.view_digest != digest_) {
      ended.status = absl::DataLossError("pull: nothing, for another than what is held");
    }
  } else if (reply.form == server::PullForm::kBroadcast && (!oldest_ || *oldest_ + 1 != reply.version)) {
    ended.status = absl::DataLossError("pull: a broadcast for another version");
  } else {
    Begin(reply.form, reply.version);
    for (std::size_t i = 0; i < reply.blocks.size(); ++i) {
      const absl::Status taken = TakeBlock(reply.first_block + i, reply.blocks[i]);
      if (taken.ok()) continue;
      ended.status = absl::DataLossError(std::string(taken.message()));
      break;
    }
    Conclude();
    if (ended.status.ok() && unfinished_) ended.status = absl::DataLossError("pull: blocks are missing");
  }
  if (!ended.status.ok()) return ended;
  if (oldest_) ended.version = *oldest_;
  ended.digest = digest_;
  const bool checkable = reply.form != server::PullForm::kLive && !digest_.empty();
  if (checkable && digest_ != reply.view_digest && !careless_) {
    ended.status = absl::DataLossError(absl::StrCat("pull: version ", reply.version, " has another digest"));
  }
  ended.confirmed = checkable;
  return ended;
}

void Base::Abandon() {
  if (!unfinished_) return;
  const bool nothing = unfinished_->form != server::PullForm::kBroadcast;
  unfinished_.reset();
  if (nothing) versions_.assign(kBlocks, std::nullopt);
  Conclude();
}

}  // namespace autoloco::sim
