#include "server/runtime/session_table.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace autoloco::server {

void SessionTable::Open(const SessionOpened& input, Instant now) {
  Session session;
  session.call = input.call;
  session.opened = now;
  const bool inserted = sessions_.emplace(input.ticket, std::move(session)).second;
  AUTOLOCO_CHECK(inserted);
  input.call->ReadNext();
}

bool SessionTable::OnRead(const SessionRead& input, Instant now) {
  const auto it = sessions_.find(input.ticket);
  if (it == sessions_.end()) return false;
  Session& session = it->second;
  if (session.closing.has_value()) return true;
  const bool is_hello = std::holds_alternative<HelloReceived>(input.event);
  if (is_hello == session.hello) {
    StartClosing(it, absl::InvalidArgumentError(is_hello ? "session: a second Hello" : "session: want Hello first"),
                 now);
    return true;
  }
  session.hello = true;
  std::visit([this](const auto& event) { events_->push_back(event); }, input.event);
  session.call->ReadNext();
  return true;
}

bool SessionTable::OnMalformed(const SessionMalformed& input, Instant now) {
  const auto it = sessions_.find(input.ticket);
  if (it == sessions_.end()) return false;
  StartClosing(it, input.status, now);
  return true;
}

bool SessionTable::OnEnded(const SessionEnded& input) {
  const auto it = sessions_.find(input.ticket);
  if (it == sessions_.end()) return false;
  TellClosed(it);
  if (!it->second.closing.has_value()) it->second.closing = absl::OkStatus();
  it->second.closing_since = absl::InfinitePast();  // the next Tick cuts what a peer that is gone does not take
  Advance(it);
  return true;
}

bool SessionTable::OnWritten(const SessionWritten& input) {
  const auto it = sessions_.find(input.ticket);
  if (it == sessions_.end()) return false;
  it->second.writing = false;
  if (!input.ok) {
    // The stream is broken: nothing more can leave, and reading will end as well.
    it->second.queue.clear();
    if (!it->second.closing.has_value()) it->second.closing = absl::UnavailableError("session: the stream is broken");
  }
  Advance(it);
  return true;
}

void SessionTable::Send(Ticket session, const SessionMessage& message, Instant now) {
  const auto it = sessions_.find(session);
  if (it == sessions_.end() || it->second.closing.has_value()) return;
  if (it->second.queue.size() >= kQueueMax) {
    it->second.queue.clear();
    it->second.closing =
        absl::ResourceExhaustedError(absl::StrCat("session: ", kQueueMax, " messages wait and none is taken"));
    it->second.closing_since = now;
    Cut(it);
    return;
  }
  it->second.queue.push_back(message);
  Advance(it);
}

void SessionTable::Close(Ticket session, const absl::Status& status, Instant now) {
  const auto it = sessions_.find(session);
  if (it != sessions_.end()) StartClosing(it, status, now);
}

void SessionTable::CloseAll(const absl::Status& status, Instant now) {
  std::vector<Ticket> tickets;
  for (const auto& [ticket, session] : sessions_) tickets.push_back(ticket);
  for (const Ticket ticket : tickets) Close(ticket, status, now);
}

void SessionTable::Tick(Instant now) {
  std::vector<Ticket> tickets;
  for (const auto& [ticket, session] : sessions_) tickets.push_back(ticket);
  for (const Ticket ticket : tickets) {
    const auto it = sessions_.find(ticket);
    Session& session = it->second;
    if (session.closing.has_value()) {
      if (!session.cut && now - session.closing_since >= kFlushTimeout) Cut(it);
    } else if (!session.hello && now - session.opened >= hello_timeout_) {
      StartClosing(
          it,
          absl::DeadlineExceededError(absl::StrCat("session: no Hello within ", absl::FormatDuration(hello_timeout_))),
          now);
    }
  }
}

void SessionTable::TellClosed(Iterator it) {
  Session& session = it->second;
  if (session.hello && !session.core_closed) events_->push_back(SessionClosed{it->first});
  session.core_closed = true;
}

void SessionTable::StartClosing(Iterator it, const absl::Status& status, Instant now) {
  if (it->second.closing.has_value()) return;
  it->second.closing = status;
  it->second.closing_since = now;
  Advance(it);
}

void SessionTable::Cut(Iterator it) {
  it->second.cut = true;
  it->second.call->Cut();
}

void SessionTable::Advance(Iterator it) {
  Session& session = it->second;
  if (session.writing) return;
  if (!session.queue.empty()) {
    session.writing = true;
    session.call->Send(session.queue.front());
    session.queue.pop_front();
    return;
  }
  if (!session.closing.has_value()) return;
  TellClosed(it);
  session.call->End(*session.closing);
  sessions_.erase(it);
}

}  // namespace autoloco::server
