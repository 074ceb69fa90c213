#include "server/runtime/payload_store.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace autoloco::server {

bool PayloadStore::IsAside(const AnnouncedPayload& announced) const {
  const auto it = aside_.find(announced.key);
  return it != aside_.end() && it->second.announced == announced;
}

bool PayloadStore::HasRoom(const AnnouncedPayload& announced) const {
  return IsAside(announced) || announced.bytes <= in_flight_bytes_max_ - in_flight_bytes_;
}

absl::StatusOr<std::shared_ptr<Payload>> PayloadStore::Admit(Ticket ticket, const AnnouncedPayload& announced) {
  AUTOLOCO_CHECK(!held_.contains(ticket));
  if (!HasRoom(announced)) {
    return absl::ResourceExhaustedError(absl::StrCat("a push of ", announced.bytes,
                                                     " bytes does not fit now: ", in_flight_bytes_, " of ",
                                                     in_flight_bytes_max_, " bytes are in flight; come back later"));
  }
  std::shared_ptr<Payload> payload;
  const auto aside = aside_.find(announced.key);
  if (IsAside(announced)) payload = aside->second.payload;
  if (aside != aside_.end()) DropAside(aside);
  if (payload == nullptr) {
    MakeRoom(announced.bytes);
    AUTOLOCO_ASSIGN_OR_RETURN(std::unique_ptr<PayloadMemory> memory, records_->Reserve(announced.bytes));
    payload = std::make_shared<Payload>(std::move(memory));
  }
  in_flight_bytes_ += announced.bytes;
  held_[ticket] = {announced, payload, Instant()};
  return payload;
}

void PayloadStore::Drop(Ticket ticket) {
  const auto it = held_.find(ticket);
  if (it == held_.end()) return;
  in_flight_bytes_ -= it->second.announced.bytes;
  held_.erase(it);
}

std::shared_ptr<Payload> PayloadStore::Find(Ticket ticket) const {
  const auto it = held_.find(ticket);
  return it == held_.end() ? nullptr : it->second.payload;
}

void PayloadStore::SetAside(Ticket ticket, Instant now) {
  const auto it = held_.find(ticket);
  if (it == held_.end()) return;
  Held held = it->second;
  Drop(ticket);
  if (held.payload->received() == 0) return;
  if (const auto old = aside_.find(held.announced.key); old != aside_.end()) DropAside(old);
  held.since = now;
  aside_bytes_ += held.announced.bytes;
  const PushKey key = held.announced.key;
  aside_.emplace(key, std::move(held));
}

const Payload* PayloadStore::FindAside(const PushKey& key) const {
  const auto it = aside_.find(key);
  return it == aside_.end() ? nullptr : it->second.payload.get();
}

void PayloadStore::DropAside(Aside::iterator it) {
  aside_bytes_ -= it->second.announced.bytes;
  aside_.erase(it);
}

void PayloadStore::DropAsideUntil(Instant time) {
  for (auto it = aside_.begin(); it != aside_.end();) {
    const auto next = std::next(it);
    if (it->second.since <= time) DropAside(it);
    it = next;
  }
}

void PayloadStore::MakeRoom(std::uint64_t bytes) {
  while (bytes > in_flight_bytes_max_ - in_flight_bytes_ - aside_bytes_) {
    const auto is_older = [](const auto& a, const auto& b) { return a.second.since < b.second.since; };
    DropAside(std::min_element(aside_.begin(), aside_.end(), is_older));
  }
}

void PayloadStore::Keep(Ticket ticket, const PushKey& key) {
  const auto it = held_.find(ticket);
  if (it == held_.end()) return;
  kept_[key] = it->second.payload;
  Drop(ticket);
}

std::shared_ptr<Payload> PayloadStore::Find(const PushKey& key) const {
  const auto it = kept_.find(key);
  return it == kept_.end() ? nullptr : it->second;
}

}  // namespace autoloco::server
