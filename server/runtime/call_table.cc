#include "server/runtime/call_table.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace autoloco::server {
namespace {

absl::Status ShuttingDown() { return absl::UnavailableError("the server is shutting down"); }

}  // namespace

absl::Status CallTable::CheckRoom() const {
  if (closed_) return ShuttingDown();
  if (size() >= calls_max_) {
    return absl::ResourceExhaustedError(absl::StrCat(calls_max_, " calls are open already; come back later"));
  }
  return absl::OkStatus();
}

void CallTable::On(const SessionOpened& input, Instant now) {
  const absl::Status room = CheckRoom();
  if (!room.ok()) return input.call->End(room);
  sessions_.Open(input, now);
}

void CallTable::On(const PushStarted& input, Instant now) {
  const absl::Status room = CheckRoom();
  if (!room.ok()) return input.call->End(room);
  pushes_.Start(input, now);
}

void CallTable::On(const PullParked& input, Instant now) {
  const absl::Status room = CheckRoom();
  if (!room.ok()) return input.call->End(room);
  pulls_.Park(input, now);
}

void CallTable::On(const PushStatusParked& input) {
  const absl::Status room = CheckRoom();
  if (!room.ok()) return input.call->End(room);
  const PushStatusAsked& asked = input.event;
  const PushStatusAsker asker{input.call, {asked.sender.worker, asked.round, asked.fragment}};
  const bool inserted = push_statuses_.emplace(asked.ticket, asker).second;
  AUTOLOCO_CHECK(inserted);
  events_->push_back(asked);
}

void CallTable::On(const EvictParked& input) {
  const absl::Status room = CheckRoom();
  if (!room.ok()) return input.call->End(room);
  const bool inserted = evictions_.emplace(input.event.ticket, input.call).second;
  AUTOLOCO_CHECK(inserted);
  events_->push_back(input.event);
}

void CallTable::Answer(const AnswerEvict& effect) {
  const auto it = evictions_.find(effect.ticket);
  if (it == evictions_.end()) return;
  it->second->End(effect.status);
  evictions_.erase(it);
}

void CallTable::Answer(const AnswerPushStatus& effect) {
  const auto it = push_statuses_.find(effect.ticket);
  if (it == push_statuses_.end()) return;
  const PushStatusAsker& asker = it->second;
  if (!effect.status.ok()) {
    asker.call->End(effect.status);
  } else {
    asker.call->Answer(effect, effect.known ? std::vector<ByteRange>() : pushes_.Missing(asker.key));
  }
  push_statuses_.erase(it);
}

void CallTable::Close(Instant now) {
  closed_ = true;
  sessions_.CloseAll(ShuttingDown(), now);
  pushes_.CloseAll(ShuttingDown());
  pulls_.CloseParked(ShuttingDown());
  for (const auto& [ticket, asker] : push_statuses_) asker.call->End(ShuttingDown());
  push_statuses_.clear();
  for (const auto& [ticket, call] : evictions_) call->End(ShuttingDown());
  evictions_.clear();
}

void CallTable::Tick(Instant now) {
  sessions_.Tick(now);
  pushes_.Tick(now);
  pulls_.Tick(now);
}

}  // namespace autoloco::server
