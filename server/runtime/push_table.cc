#include "server/runtime/push_table.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "server/runtime/push_check.h"

namespace autoloco::server {
namespace {

// On a thread of the pool.
void CheckAndPost(const std::shared_ptr<Payload>& payload, const PushOpened& header, const Layout& layout, Codec codec,
                  WorkPool* pool, Inbox* inbox) {
  payload->memory()->Arrived();
  PushCheck check = CheckPayload(payload->bytes(), header.payload_digest, layout, codec, pool);
  inbox->Post(
      PushChecked{header.ticket, std::move(check.status), check.finite, std::move(check.non_finite), check.norm});
}

}  // namespace

void PushTable::Start(const PushStarted& input, Instant now) {
  Push push;
  push.call = input.call;
  push.watch = TransferWatch(now);
  const bool inserted = pushes_.emplace(input.ticket, std::move(push)).second;
  AUTOLOCO_CHECK(inserted);
  input.call->ReadHeader();
}

bool PushTable::OnHeader(const PushHeaderRead& input) {
  const auto it = pushes_.find(input.event.ticket);
  if (it == pushes_.end()) return false;
  it->second.state = State::kParked;
  it->second.header = input.event;
  tools_.events->push_back(input.event);
  return true;
}

bool PushTable::OnMalformed(const PushMalformed& input) {
  const auto it = pushes_.find(input.ticket);
  if (it == pushes_.end()) return false;
  GiveUp(it, input.status);
  return true;
}

void PushTable::Admit(const AdmitPush& effect, Instant now) {
  const auto it = pushes_.find(effect.ticket);
  if (it == pushes_.end()) return;
  AUTOLOCO_CHECK(it->second.state == State::kParked);
  absl::StatusOr<std::shared_ptr<Payload>> payload = tools_.payloads->Admit(effect.ticket, effect.payload_bytes);
  if (!payload.ok()) return GiveUp(it, payload.status());
  it->second.state = State::kReceiving;
  it->second.payload = *payload;
  it->second.watch = TransferWatch(now);
  it->second.call->ReceivePayload(*std::move(payload));
}

bool PushTable::OnPayloadEnded(const PushPayloadEnded& input, Instant now) {
  const auto it = pushes_.find(input.ticket);
  if (it == pushes_.end() || it->second.state != State::kReceiving) return false;
  Push& push = it->second;
  if (input.status.ok()) {
    tools_.telemetry->OnTransfer(Direction::kPush, push.payload->size(), tools_.layout->value_count() * sizeof(float),
                                 now - push.watch.started());
    StartCheck(it);
  } else if (input.cut_short) {
    push.state = State::kEndedEarly;  // the next Tick answers, if the caller is still there
    push.end_status = input.status;
  } else if (absl::IsResourceExhausted(input.status)) {
    GiveUp(it, input.status);
  } else {
    push.state = State::kChecked;
    tools_.events->push_back(PushVerified{input.ticket, input.status, true, ""});
  }
  return true;
}

void PushTable::StartCheck(Iterator it) {
  Push& push = it->second;
  push.state = State::kChecking;
  tools_.pool->Post([payload = push.payload, header = push.header, tools = tools_] {
    CheckAndPost(payload, header, *tools.layout, tools.codec, tools.pool, tools.inbox);
  });
}

bool PushTable::OnChecked(const PushChecked& input) {
  const auto it = pushes_.find(input.ticket);
  if (it == pushes_.end() || it->second.state != State::kChecking) return false;
  it->second.state = State::kChecked;
  tools_.events->push_back(PushVerified{input.ticket, input.status, input.finite, input.non_finite, input.norm});
  return true;
}

bool PushTable::OnAbandoned(const PushAbandoned& input) {
  const auto it = pushes_.find(input.ticket);
  if (it == pushes_.end()) return false;
  GiveUp(it, absl::CancelledError("push: the caller is gone"));
  return true;
}

void PushTable::Answer(const AnswerPush& effect) {
  const auto it = pushes_.find(effect.ticket);
  if (it == pushes_.end()) return;
  tools_.payloads->Drop(effect.ticket);  // an accepted one is kept under its key by now
  it->second.call->Answer(effect.outcome, effect.reason, effect.replayed);
  Forget(it);
}

void PushTable::Refuse(Ticket ticket, const absl::Status& status) {
  const auto it = pushes_.find(ticket);
  if (it == pushes_.end()) return;
  tools_.payloads->Drop(ticket);
  it->second.call->End(status);
  Forget(it);
}

void PushTable::GiveUp(Iterator it, const absl::Status& status) {
  const Ticket ticket = it->first;
  if (it->second.state != State::kHeader) tools_.events->push_back(PushCancelled{ticket});
  Refuse(ticket, status);
}

void PushTable::Forget(Iterator it) {
  if (it->second.payload != nullptr) bytes_of_ended_ += it->second.payload->received();
  pushes_.erase(it);
}

void PushTable::CloseAll(const absl::Status& status) {
  while (!pushes_.empty()) GiveUp(pushes_.begin(), status);
}

void PushTable::Tick(Instant now) {
  std::vector<Ticket> tickets;
  for (const auto& [ticket, push] : pushes_) tickets.push_back(ticket);
  for (const Ticket ticket : tickets) {
    const auto it = pushes_.find(ticket);
    Push& push = it->second;
    if (push.state == State::kEndedEarly) {
      push.state = State::kChecked;
      tools_.events->push_back(PushVerified{ticket, push.end_status, true, ""});
    }
    if (push.state != State::kHeader && push.state != State::kReceiving) continue;
    const std::uint64_t received = push.payload == nullptr ? 0 : push.payload->received();
    if (push.watch.Heard(received, now)) tools_.events->push_back(WorkerHeard{push.header.sender});
    CutIfStalled(it, received, now);
  }
}

void PushTable::CutIfStalled(Iterator it, std::uint64_t received, Instant now) {
  if (!it->second.watch.Stalled(received, now, stall_timeout_)) return;
  GiveUp(it,
         absl::DeadlineExceededError(absl::StrCat("push: less than ", TransferWatch::kLeastBytes, " bytes came in ",
                                                  absl::FormatDuration(stall_timeout_), "; ", received, " in all")));
}

std::uint64_t PushTable::bytes_received() const {
  std::uint64_t bytes = bytes_of_ended_;
  for (const auto& [ticket, push] : pushes_) {
    if (push.payload != nullptr) bytes += push.payload->received();
  }
  return bytes;
}

}  // namespace autoloco::server
