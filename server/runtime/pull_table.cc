#include "server/runtime/pull_table.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/codec/codec.h"

namespace autoloco::server {

void PullTable::Park(const PullParked& input, Instant now) {
  Pull pull;
  pull.call = input.call;
  pull.sender = input.event.sender;
  pull.watch = TransferWatch(now);
  const bool inserted = pulls_.emplace(input.event.ticket, std::move(pull)).second;
  AUTOLOCO_CHECK(inserted);
  events_->push_back(input.event);
}

absl::StatusOr<PullAnswer> PullTable::AnswerTo(const ServePull& effect) const {
  PullAnswer answer;
  answer.form = effect.form;
  answer.version = effect.version;
  answer.view_digest = effect.view_digest;
  answer.layout_hash = source_.layout->hash();
  answer.header_only = effect.header_only;
  if (effect.form == PullForm::kNothing) return answer;
  if (effect.form == PullForm::kLive) {
    AUTOLOCO_CHECK(source_.live != nullptr);
    answer.live = source_.live;
  } else {
    // The core's word was held back by the disk, and a commit came meanwhile.
    answer.payload = log_.Find(effect.form, effect.version);
    if (answer.payload == nullptr) {
      return absl::AbortedError(absl::StrCat("version ", effect.version, " is gone; ask again"));
    }
    answer.params_digest = answer.payload->header().params_digest;
    answer.codec = answer.payload->header().codec;
  }
  const std::uint64_t values = source_.layout->value_count();
  const std::uint64_t blocks = BlockCount(values);
  if (effect.first_block >= blocks || effect.block_count > blocks - effect.first_block) {
    return absl::InvalidArgumentError(
        absl::StrCat("pull: want blocks within ", blocks, ", got ", effect.block_count, " from ", effect.first_block));
  }
  answer.first_block = effect.first_block;
  answer.block_count = effect.block_count == 0 ? blocks - effect.first_block : effect.block_count;
  const std::uint64_t end = answer.first_block + answer.block_count;
  answer.value_count = std::min(end * kBlockValues, values) - answer.first_block * kBlockValues;
  if (answer.payload == nullptr) return answer;
  answer.first_byte = answer.payload->OffsetOf(answer.first_block);
  answer.byte_count = answer.payload->OffsetOf(end) - answer.first_byte;
  return answer;
}

void PullTable::Serve(const ServePull& effect, Instant now) {
  const auto it = pulls_.find(effect.ticket);
  if (it == pulls_.end()) return;
  absl::StatusOr<PullAnswer> answer = AnswerTo(effect);
  if (!answer.ok()) return Refuse(effect.ticket, answer.status());
  Pull& pull = it->second;
  pull.moved = std::make_shared<std::atomic<std::uint64_t>>(0);
  if (!answer->header_only) pull.value_count = answer->value_count;
  pull.watch = TransferWatch(now);
  pull.call->Send(*std::move(answer), pull.moved);
}

void PullTable::Refuse(Ticket ticket, const absl::Status& status) {
  const auto it = pulls_.find(ticket);
  if (it == pulls_.end()) return;
  AUTOLOCO_CHECK(it->second.moved == nullptr);
  it->second.call->End(status);
  pulls_.erase(it);
}

bool PullTable::OnEnded(const PullEnded& input, Instant now) {
  const auto it = pulls_.find(input.ticket);
  if (it == pulls_.end()) return false;
  const Pull& pull = it->second;
  const std::uint64_t moved = pull.moved->load(std::memory_order_relaxed);
  bytes_of_ended_ += moved;
  if (input.ok && pull.value_count > 0) {
    telemetry_->OnTransfer(Direction::kPull, moved, pull.value_count * sizeof(float), now - pull.watch.started());
  }
  pull.call->End(input.ok ? absl::OkStatus() : absl::CancelledError("pull: the stream is broken"));
  pulls_.erase(it);
  return true;
}

void PullTable::CloseParked(const absl::Status& status) {
  std::vector<Ticket> parked;
  for (const auto& [ticket, pull] : pulls_) {
    if (pull.moved == nullptr) parked.push_back(ticket);
  }
  for (const Ticket ticket : parked) Refuse(ticket, status);
}

void PullTable::Tick(Instant now) {
  std::map<std::string, std::uint64_t> streams;  // by worker
  for (const auto& [ticket, pull] : pulls_) {
    if (pull.moved != nullptr) ++streams[pull.sender.worker.name];
  }
  for (auto& [ticket, pull] : pulls_) {
    if (pull.moved == nullptr || pull.cut) continue;
    const std::uint64_t moved = pull.moved->load(std::memory_order_relaxed);
    if (pull.watch.Heard(moved, now)) events_->push_back(WorkerHeard{pull.sender});
    // Together a worker's streams must move what one alone would have to.
    const std::uint64_t least = TransferWatch::kLeastBytes / streams[pull.sender.worker.name];
    if (pull.watch.Stalled(moved, now, stall_timeout_, least)) {
      pull.cut = true;
      pull.call->Cut();
    }
  }
}

std::uint64_t PullTable::bytes_sent() const {
  std::uint64_t bytes = bytes_of_ended_;
  for (const auto& [ticket, pull] : pulls_) {
    if (pull.moved != nullptr) bytes += pull.moved->load(std::memory_order_relaxed);
  }
  return bytes;
}

}  // namespace autoloco::server
