#include "server/runtime/pull_table.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

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

void PullTable::Serve(const ServePull& effect, Instant now) {
  const auto it = pulls_.find(effect.ticket);
  if (it == pulls_.end()) return;
  AUTOLOCO_CHECK(snapshot_ != nullptr);
  // The core's word was held back by the disk, and a commit came meanwhile: the new version is not for anybody yet.
  if (snapshot_->header().version != effect.version) {
    return Refuse(effect.ticket, absl::AbortedError(absl::StrCat("version ", effect.version, " is gone; ask again")));
  }
  Pull& pull = it->second;
  pull.snapshot = snapshot_;
  pull.moved = std::make_shared<std::atomic<std::uint64_t>>(0);
  pull.watch = TransferWatch(now);
  pull.call->SendSnapshot(pull.snapshot, pull.moved);
}

void PullTable::Refuse(Ticket ticket, const absl::Status& status) {
  const auto it = pulls_.find(ticket);
  if (it == pulls_.end()) return;
  AUTOLOCO_CHECK(it->second.snapshot == nullptr);
  it->second.call->End(status);
  pulls_.erase(it);
}

bool PullTable::OnEnded(const PullEnded& input, Instant now) {
  const auto it = pulls_.find(input.ticket);
  if (it == pulls_.end()) return false;
  const Pull& pull = it->second;
  const std::uint64_t moved = pull.moved->load(std::memory_order_relaxed);
  bytes_of_ended_ += moved;
  if (input.ok) {
    telemetry_->OnTransfer(Direction::kPull, moved, pull.snapshot->header().value_count * sizeof(float),
                           now - pull.watch.started());
  }
  pull.call->End(input.ok ? absl::OkStatus() : absl::CancelledError("pull: the stream is broken"));
  pulls_.erase(it);
  return true;
}

void PullTable::CloseParked(const absl::Status& status) {
  std::vector<Ticket> parked;
  for (const auto& [ticket, pull] : pulls_) {
    if (pull.snapshot == nullptr) parked.push_back(ticket);
  }
  for (const Ticket ticket : parked) Refuse(ticket, status);
}

void PullTable::Tick(Instant now) {
  for (auto& [ticket, pull] : pulls_) {
    if (pull.snapshot == nullptr || pull.cut) continue;
    const std::uint64_t moved = pull.moved->load(std::memory_order_relaxed);
    if (pull.watch.Heard(moved, now)) events_->push_back(WorkerHeard{pull.sender});
    if (pull.watch.Stalled(moved, now, stall_timeout_)) {
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
