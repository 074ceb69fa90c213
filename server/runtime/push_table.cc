#include "server/runtime/push_table.h"

#include <algorithm>
#include <utility>

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

PushKey KeyOf(const PushOpened& header) { return {header.sender.worker, header.round, header.fragment}; }

AnnouncedPayload AnnouncedBy(const PushOpened& header) {
  return {KeyOf(header), header.payload_digest, header.payload_bytes};
}

bool SaysTheSame(const PushOpened& a, const PushOpened& b) {
  return a.sender.run_id == b.sender.run_id && AnnouncedBy(a) == AnnouncedBy(b) && a.layout_hash == b.layout_hash &&
         a.codec_matches == b.codec_matches && a.leaving == b.leaving && a.report == b.report;
}

absl::Status Stall(std::uint64_t received, absl::Duration timeout) {
  return absl::DeadlineExceededError(absl::StrCat("push: less than ", TransferWatch::kLeastBytes, " bytes came in ",
                                                  absl::FormatDuration(timeout), "; ", received, " in all"));
}

template <typename Value>
std::vector<Ticket> TicketsOf(const std::map<Ticket, Value>& table) {
  std::vector<Ticket> tickets;
  tickets.reserve(table.size());
  for (const auto& [ticket, value] : table) tickets.push_back(ticket);
  return tickets;
}

}  // namespace

// ---------------------------------------------------------------------------------------------------- streams

void PushTable::Start(const PushStarted& input, Instant now) {
  Stream stream;
  stream.call = input.call;
  stream.watch = TransferWatch(now);
  const bool inserted = streams_.emplace(input.ticket, std::move(stream)).second;
  AUTOLOCO_CHECK(inserted);
  input.call->ReadHeader();
}

bool PushTable::OnHeader(const PushHeaderRead& input, Instant now) {
  const Ticket ticket = input.event.ticket;
  const auto it = streams_.find(ticket);
  if (it == streams_.end()) return false;
  Stream& stream = it->second;
  stream.state = StreamState::kWaiting;
  stream.range = input.range;
  PushIterator push = FindSame(input.event);
  if (push == pushes_.end()) {
    push = pushes_.emplace(ticket, Push()).first;
    push->second.header = input.event;
    tools_.events->push_back(input.event);
  }
  stream.push = push->first;
  push->second.streams.insert(ticket);
  if (push->second.state == State::kReceiving) StartReceiving(&stream, push->second, now);
  return true;
}

bool PushTable::OnMalformed(const PushMalformed& input) {
  const auto it = streams_.find(input.ticket);
  if (it == streams_.end()) return false;
  it->second.call->End(input.status);
  Forget(it);
  return true;
}

void PushTable::StartReceiving(Stream* stream, const Push& push, Instant now) {
  stream->state = StreamState::kReceiving;
  stream->part = std::make_shared<PayloadPart>(push.payload, stream->range, chunk_bytes_max_);
  stream->watch = TransferWatch(now);
  stream->call->ReceivePayload(stream->part);
}

bool PushTable::OnPayloadEnded(const PushPayloadEnded& input, Instant now) {
  const auto it = streams_.find(input.ticket);
  if (it == streams_.end() || it->second.state != StreamState::kReceiving) return false;
  Stream& stream = it->second;
  const PushIterator push = PushOf(stream);
  if (input.status.ok()) {
    stream.state = StreamState::kDone;
    push->second.alone = now;
    StartCheckIfWhole(push, now);
  } else if (input.cut_short) {
    stream.state = StreamState::kCutShort;
    stream.end_status = input.status;
    stream.ended = now;
  } else if (push->second.state != State::kReceiving) {
    Detach(it, input.status, now);  // the others brought all that was needed
  } else if (absl::IsResourceExhausted(input.status)) {
    GiveUp(push, input.status);
  } else {
    stream.state = StreamState::kDone;
    push->second.state = State::kChecked;
    tools_.events->push_back(PushVerified{push->first, input.status, true, ""});
  }
  return true;
}

bool PushTable::OnAbandoned(const PushAbandoned& input, Instant now) {
  const auto it = streams_.find(input.ticket);
  if (it == streams_.end()) return false;
  Detach(it, absl::CancelledError("push: the caller is gone"), now);
  return true;
}

void PushTable::Detach(StreamIterator it, const absl::Status& status, Instant now) {
  const PushIterator push = it->second.push == 0 ? pushes_.end() : PushOf(it->second);
  it->second.call->End(status);
  const Ticket ticket = it->first;
  Forget(it);
  if (push == pushes_.end()) return;
  push->second.streams.erase(ticket);
  push->second.alone = now;
  if (!push->second.streams.empty()) return;
  if (push->second.state == State::kChecking || push->second.state == State::kChecked) return;
  tools_.payloads->SetAside(push->first, now);
  tools_.events->push_back(PushCancelled{push->first});
  pushes_.erase(push);
}

void PushTable::Forget(StreamIterator it) {
  if (it->second.part != nullptr) bytes_of_ended_ += it->second.part->taken();
  streams_.erase(it);
}

// ---------------------------------------------------------------------------------------------------- pushes

PushTable::PushIterator PushTable::FindSame(const PushOpened& header) {
  return std::find_if(pushes_.begin(), pushes_.end(),
                      [&](const auto& entry) { return SaysTheSame(entry.second.header, header); });
}

PushTable::PushIterator PushTable::PushOf(const Stream& stream) {
  const PushIterator it = pushes_.find(stream.push);
  AUTOLOCO_CHECK(it != pushes_.end());
  return it;
}

void PushTable::Admit(const AdmitPush& effect, Instant now) {
  const PushIterator it = pushes_.find(effect.ticket);
  if (it == pushes_.end()) return;
  AUTOLOCO_CHECK(it->second.state == State::kParked);
  it->second.state = State::kQueued;
  it->second.queued = now;
  AdmitQueued(now);
}

// In the order of their tickets: a large one is not overtaken again and again by small ones.
void PushTable::AdmitQueued(Instant now) {
  for (const Ticket ticket : TicketsOf(pushes_)) {
    const PushIterator it = pushes_.find(ticket);
    if (it == pushes_.end() || it->second.state != State::kQueued) continue;
    Push& push = it->second;
    const AnnouncedPayload announced = AnnouncedBy(push.header);
    if (!tools_.payloads->HasRoom(announced)) return;
    absl::StatusOr<std::shared_ptr<Payload>> payload = tools_.payloads->Admit(ticket, announced);
    if (!payload.ok()) {
      GiveUp(it, payload.status());
      continue;
    }
    push.state = State::kReceiving;
    push.payload = *std::move(payload);
    push.watch = TransferWatch(now);
    for (const Ticket stream : push.streams) StartReceiving(&streams_.at(stream), push, now);
    StartCheckIfWhole(it, now);
  }
}

void PushTable::StartCheckIfWhole(PushIterator it, Instant now) {
  Push& push = it->second;
  if (push.state != State::kReceiving || !push.payload->whole()) return;
  push.state = State::kChecking;
  tools_.telemetry->OnTransfer(Direction::kPush, push.payload->size(), tools_.layout->value_count() * sizeof(float),
                               now - push.watch.started());
  tools_.pool->Post([payload = push.payload, header = push.header, tools = tools_] {
    CheckAndPost(payload, header, *tools.layout, tools.codec, tools.pool, tools.inbox);
  });
}

bool PushTable::OnChecked(const PushChecked& input) {
  const PushIterator it = pushes_.find(input.ticket);
  if (it == pushes_.end() || it->second.state != State::kChecking) return false;
  it->second.state = State::kChecked;
  tools_.events->push_back(PushVerified{input.ticket, input.status, input.finite, input.non_finite, input.norm});
  return true;
}

void PushTable::Answer(const AnswerPush& effect) {
  const PushIterator it = pushes_.find(effect.ticket);
  if (it == pushes_.end()) return;
  tools_.payloads->Drop(effect.ticket);  // an accepted one is kept under its key by now
  for (const Ticket ticket : it->second.streams) {
    const StreamIterator stream = streams_.find(ticket);
    stream->second.call->Answer(effect.outcome, effect.reason, effect.replayed);
    Forget(stream);
  }
  pushes_.erase(it);
}

void PushTable::Refuse(Ticket ticket, const absl::Status& status) {
  const PushIterator it = pushes_.find(ticket);
  if (it == pushes_.end()) return;
  tools_.payloads->Drop(ticket);
  for (const Ticket one : it->second.streams) {
    const StreamIterator stream = streams_.find(one);
    stream->second.call->End(status);
    Forget(stream);
  }
  pushes_.erase(it);
}

void PushTable::GiveUp(PushIterator it, const absl::Status& status) {
  const Ticket ticket = it->first;
  tools_.events->push_back(PushCancelled{ticket});
  Refuse(ticket, status);
}

std::vector<ByteRange> PushTable::Missing(const PushKey& key) const {
  const Payload* payload = tools_.payloads->FindAside(key);
  for (const auto& [ticket, push] : pushes_) {
    if (KeyOf(push.header) == key && push.payload != nullptr) payload = push.payload.get();
  }
  if (payload == nullptr || payload->received() == 0) return {};
  std::vector<ByteRange> missing = payload->Missing(kMissingRangesMax);
  if (missing.empty()) missing.push_back({payload->size(), 0});
  return missing;
}

void PushTable::CloseAll(const absl::Status& status) {
  while (!pushes_.empty()) GiveUp(pushes_.begin(), status);
  while (!streams_.empty()) {  // those without a header
    streams_.begin()->second.call->End(status);
    Forget(streams_.begin());
  }
}

// ---------------------------------------------------------------------------------------------------- time

void PushTable::Tick(Instant now) {
  for (const Ticket ticket : TicketsOf(streams_)) {
    if (const StreamIterator it = streams_.find(ticket); it != streams_.end()) TickStream(it, now);
  }
  for (const Ticket ticket : TicketsOf(pushes_)) TickPush(pushes_.find(ticket), now);
  tools_.payloads->DropAsideUntil(now - stall_timeout_);
  AdmitQueued(now);
}

void PushTable::TickStream(StreamIterator it, Instant now) {
  Stream& stream = it->second;
  switch (stream.state) {
    case StreamState::kHeader:
      if (stream.watch.Stalled(0, now, stall_timeout_)) Detach(it, Stall(0, stall_timeout_), now);
      return;
    case StreamState::kReceiving: {
      // Together they must move what one alone would have to.
      const std::uint64_t least =
          TransferWatch::kLeastBytes / std::max<std::size_t>(1, ReceivingStreams(PushOf(stream)->second));
      const std::uint64_t taken = stream.part->taken();
      if (stream.watch.Stalled(taken, now, stall_timeout_, least)) Detach(it, Stall(taken, stall_timeout_), now);
      return;
    }
    case StreamState::kCutShort: {
      if (now - stream.ended < kCutShortGrace) return;
      const PushIterator push = PushOf(stream);
      if (push->second.state != State::kReceiving) return Detach(it, stream.end_status, now);
      stream.state = StreamState::kDone;
      push->second.state = State::kChecked;
      tools_.events->push_back(PushVerified{push->first, stream.end_status, true, ""});
      return;
    }
    case StreamState::kWaiting:
    case StreamState::kDone: return;
  }
}

void PushTable::TickPush(PushIterator it, Instant now) {
  if (it == pushes_.end()) return;
  Push& push = it->second;
  if (push.state == State::kQueued && now - push.queued >= stall_timeout_ * kQueueShare) {
    return GiveUp(
        it, absl::ResourceExhaustedError(absl::StrCat(
                "a push of ", push.header.payload_bytes, " bytes has found no room in ",
                absl::FormatDuration(stall_timeout_ * kQueueShare), ": too many are in flight; come back later")));
  }
  if (push.state != State::kReceiving) return;
  const std::uint64_t received = push.payload->received();
  if (push.watch.Heard(received, now)) tools_.events->push_back(WorkerHeard{push.header.sender});
  StartCheckIfWhole(it, now);
  // The streams that are left have brought their ranges, and nobody brings the rest.
  if (push.state != State::kReceiving || ReceivingStreams(push) > 0 || now - push.alone < stall_timeout_) return;
  const std::set<Ticket> streams = push.streams;
  for (const Ticket ticket : streams) Detach(streams_.find(ticket), Stall(received, stall_timeout_), now);
}

std::size_t PushTable::ReceivingStreams(const Push& push) const {
  return std::count_if(push.streams.begin(), push.streams.end(), [this](Ticket ticket) {
    const StreamState state = streams_.at(ticket).state;
    return state == StreamState::kReceiving || state == StreamState::kCutShort;
  });
}

std::uint64_t PushTable::bytes_received() const {
  std::uint64_t bytes = bytes_of_ended_;
  for (const auto& [ticket, stream] : streams_) {
    if (stream.part != nullptr) bytes += stream.part->taken();
  }
  return bytes;
}

}  // namespace autoloco::server
