#include "server/runtime/payload_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace autoloco::server {

absl::StatusOr<std::shared_ptr<Payload>> PayloadStore::Admit(Ticket ticket, std::uint64_t size_bytes) {
  AUTOLOCO_CHECK(!held_.contains(ticket));
  if (size_bytes > in_flight_bytes_max_ - in_flight_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat("a push of ", size_bytes,
                                                     " bytes does not fit now: ", in_flight_bytes_, " of ",
                                                     in_flight_bytes_max_, " bytes are in flight; come back later"));
  }
  AUTOLOCO_ASSIGN_OR_RETURN(std::unique_ptr<PayloadMemory> memory, records_->Reserve(size_bytes));
  auto payload = std::make_shared<Payload>(std::move(memory), chunk_bytes_max_);
  in_flight_bytes_ += size_bytes;
  held_[ticket] = payload;
  return payload;
}

void PayloadStore::Drop(Ticket ticket) {
  const auto it = held_.find(ticket);
  if (it == held_.end()) return;
  in_flight_bytes_ -= it->second->size();
  held_.erase(it);
}

std::shared_ptr<Payload> PayloadStore::Find(Ticket ticket) const {
  const auto it = held_.find(ticket);
  return it == held_.end() ? nullptr : it->second;
}

void PayloadStore::Keep(Ticket ticket, const PushKey& key) {
  const auto it = held_.find(ticket);
  if (it == held_.end()) return;
  kept_[key] = it->second;
  Drop(ticket);
}

std::shared_ptr<Payload> PayloadStore::Find(const PushKey& key) const {
  const auto it = kept_.find(key);
  return it == kept_.end() ? nullptr : it->second;
}

}  // namespace autoloco::server
