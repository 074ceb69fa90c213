#include "tests/sim/network.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace autoloco::sim {
namespace {

constexpr absl::Duration kKeepalive = absl::Seconds(40);  // until a connection without a peer is noticed
constexpr absl::Duration kStall = absl::Seconds(60);      // until a transfer without a peer is given up

const char* RequestName(const Request& request) {
  switch (request.index()) {
    case 0: return "push";
    case 1: return "push_status";
    default: return "pull";
  }
}

}  // namespace

Network::Client Network::Attach(ClientPort* port, std::string name) {
  links_.push_back({port, std::move(name), absl::InfinitePast()});
  return links_.size() - 1;
}

void Network::AttachServer(ServerPort* port) { server_ = port; }

void Network::Detach(Client client, bool silently) {
  links_[client].port = nullptr;
  for (auto& [id, stream] : streams_) {
    if (stream.client != client || !stream.client_open) continue;
    stream.client_open = false;
    EndAtServer(id, silently ? world_->now() + kKeepalive : Arrival(client));
  }
  for (auto& [id, call] : calls_) {
    if (call.client != client || !call.client_open) continue;
    call.client_open = false;
    AbortAtServer(id, silently ? world_->now() + kStall : Arrival(client));
  }
}

void Network::DetachServer(bool silently) {
  server_ = nullptr;
  const absl::Status status = absl::UnavailableError("connection reset by peer");
  for (auto& [id, stream] : streams_) {
    if (!stream.server_open || !stream.heard) continue;
    stream.server_open = false;
    EndAtClient(id, silently ? world_->now() + kKeepalive : Arrival(stream.client), status);
  }
  for (auto& [id, call] : calls_) {
    if (!call.server_open) continue;
    call.server_open = false;
    FailAtClient(id, silently ? world_->now() + kStall : Arrival(call.client), status);
  }
}

absl::Time Network::Arrival(Client client) {
  absl::Duration delay = absl::Milliseconds(dice_.Between(0.5, 20.0));
  if (faults_->Strikes(Fault::kDelay)) delay += dice_.Between(absl::Milliseconds(50), absl::Seconds(3));
  const absl::Time blocked = links_[client].blocked_until;
  if (blocked > world_->now()) delay += blocked - world_->now() + absl::Milliseconds(dice_.Between(0.0, 2000.0));
  return world_->now() + delay;
}

// In order: a message is never earlier than the one before it.
absl::Time Network::StreamArrival(Client client, absl::Time* free) {
  *free = std::max(Arrival(client), *free + absl::Nanoseconds(1));
  return *free;
}

// ---------------------------------------------------------------------------------------------------- streams

StreamId Network::OpenStream(Client client, const server::HelloReceived& hello) {
  const StreamId id = next_id_++;
  Stream& stream = streams_[id];
  stream.client = client;
  const absl::Time arrival = StreamArrival(client, &stream.to_server_free);
  world_->At(arrival, [this, id, hello] {
    Stream& opened = streams_.at(id);
    if (opened.cut) return;
    if (server_ == nullptr) {
      opened.server_open = false;
      EndAtClient(id, Arrival(opened.client), absl::UnavailableError("connection refused"));
      return;
    }
    opened.heard = true;
    server_->OnMessage(id, hello);
  });
  return id;
}

void Network::Send(StreamId id, const ToServer& message) {
  const auto it = streams_.find(id);
  if (it == streams_.end() || it->second.cut) return;
  world_->At(StreamArrival(it->second.client, &it->second.to_server_free),
             [this, id, message] { DeliverToServer(id, message); });
}

void Network::DeliverToServer(StreamId id, const ToServer& message) {
  const Stream& stream = streams_.at(id);
  if (!stream.cut && stream.server_open && stream.heard && server_ != nullptr) server_->OnMessage(id, message);
}

void Network::CancelStream(StreamId id) {
  const auto it = streams_.find(id);
  if (it == streams_.end() || !it->second.client_open) return;
  EndAtServer(id, StreamArrival(it->second.client, &it->second.to_server_free));
  EndAtClient(id, world_->now() + absl::Milliseconds(1), absl::CancelledError("cancelled"));
}

void Network::Send(StreamId id, const ToWorker& message) {
  const auto it = streams_.find(id);
  if (it == streams_.end() || it->second.cut || !it->second.server_open) return;
  world_->At(StreamArrival(it->second.client, &it->second.to_client_free), [this, id, message] {
    const Stream& stream = streams_.at(id);
    ClientPort* port = links_[stream.client].port;
    if (!stream.cut && stream.client_open && port != nullptr) port->OnMessage(id, message);
  });
}

void Network::EndStream(StreamId id, const absl::Status& status) {
  const auto it = streams_.find(id);
  if (it == streams_.end() || !it->second.server_open) return;
  it->second.server_open = false;
  EndAtClient(id, StreamArrival(it->second.client, &it->second.to_client_free), status);
}

void Network::EndAtServer(StreamId id, absl::Time time) {
  world_->At(std::max(time, streams_.at(id).to_server_free), [this, id] {
    Stream& stream = streams_.at(id);
    if (!stream.server_open) return;
    stream.server_open = false;
    if (stream.heard && server_ != nullptr) server_->OnStreamEnded(id);
  });
}

void Network::EndAtClient(StreamId id, absl::Time time, const absl::Status& status) {
  world_->At(std::max(time, streams_.at(id).to_client_free), [this, id, status] {
    Stream& stream = streams_.at(id);
    if (!stream.client_open) return;
    stream.client_open = false;
    if (links_[stream.client].port != nullptr) links_[stream.client].port->OnStreamEnded(id, status);
  });
}

void Network::CutStreams(Client client) {
  for (auto& [id, stream] : streams_) {
    if (stream.client != client || stream.cut || !stream.client_open) continue;
    stream.cut = true;
    EndAtClient(id, world_->now() + dice_.Between(absl::Milliseconds(1), absl::Seconds(2)),
                absl::UnavailableError("the stream broke"));
    EndAtServer(id, world_->now() + dice_.Between(absl::Milliseconds(1), absl::Seconds(2)));
  }
}

// ---------------------------------------------------------------------------------------------------- calls

CallId Network::StartCall(Client client, Request request) {
  const CallId id = next_id_++;
  Call& call = calls_[id];
  call.client = client;
  call.name = RequestName(request);
  call.request = std::move(request);
  if (faults_->Strikes(Fault::kRequestLost)) {
    FailAtClient(id, Arrival(client) + dice_.Between(absl::ZeroDuration(), absl::Seconds(5)),
                 absl::UnavailableError("the request was lost"));
    trace_->Line(NameOf(client), "request_lost", call.name);
    return id;
  }
  absl::Time arrival = Arrival(client);
  if (faults_->Strikes(Fault::kReordered)) arrival += dice_.Between(absl::Milliseconds(100), absl::Seconds(25));
  world_->At(arrival, [this, id] { ArriveCall(id); });
  if (faults_->Strikes(Fault::kDuplicated)) {
    const CallId again = next_id_++;
    Call twin = call;
    twin.duplicate = true;
    calls_[again] = std::move(twin);
    world_->At(arrival + dice_.Between(absl::ZeroDuration(), absl::Seconds(20)), [this, again] { ArriveCall(again); });
  }
  return id;
}

void Network::ArriveCall(CallId id) {
  Call& call = calls_.at(id);
  if (server_ == nullptr) {
    FailAtClient(id, Arrival(call.client), absl::UnavailableError("connection refused"));
    return;
  }
  call.server_open = true;
  if (call.duplicate) trace_->Line(NameOf(call.client), "duplicate", call.name);
  server_->OnCall(id, call.request);
  // Its caller gave up before it came.
  if (!calls_.at(id).client_open) AbortAtServer(id, Arrival(call.client));
}

void Network::CancelCall(CallId id) {
  const auto it = calls_.find(id);
  if (it == calls_.end() || !it->second.client_open) return;
  it->second.client_open = false;
  if (it->second.server_open) AbortAtServer(id, Arrival(it->second.client));
}

void Network::AbortAtServer(CallId id, absl::Time time) {
  world_->At(time, [this, id] {
    Call& call = calls_.at(id);
    if (!call.server_open || server_ == nullptr) return;
    call.server_open = false;
    server_->OnCallAborted(id);
  });
}

void Network::FailAtClient(CallId id, absl::Time time, const absl::Status& status) {
  world_->At(time, [this, id, status] {
    Call& call = calls_.at(id);
    if (!call.client_open || call.duplicate) return;
    call.client_open = false;
    if (links_[call.client].port != nullptr) links_[call.client].port->OnCallFailed(id, status);
  });
}

absl::Duration Network::TransferTime() {
  if (faults_->Strikes(Fault::kDelay)) return dice_.Between(absl::Seconds(1), absl::Seconds(12));
  return absl::Milliseconds(dice_.Between(5.0, 300.0));
}

void Network::Admit(CallId id) {
  const auto it = calls_.find(id);
  if (it == calls_.end() || !it->second.server_open) return;
  const absl::Duration duration = TransferTime();
  for (absl::Duration moved = absl::Seconds(1); moved < duration; moved += absl::Seconds(1)) {
    world_->After(moved, [this, id] {
      const Call& call = calls_.at(id);
      if (call.server_open && server_ != nullptr) server_->OnMoving(id);
    });
  }
  FinishPayload(id, duration);
}

void Network::FinishPayload(CallId id, absl::Duration duration) {
  const Client client = calls_.at(id).client;
  std::string payload = std::get<PushCall>(calls_.at(id).request).payload;
  bool broken = false;
  if (faults_->Strikes(Fault::kTransferCut)) {
    broken = true;
    const std::uint64_t kept = dice_.Below(payload.size());
    trace_->Line(NameOf(client), "transfer_cut", "push after byte ", kept);
    payload.resize(kept);
    duration *= dice_.Uniform();
  } else if (faults_->Strikes(Fault::kCorrupted)) {
    payload[dice_.Below(payload.size())] ^= static_cast<char>(1 + dice_.Below(255));
  }
  world_->At(std::max(Arrival(client), world_->now() + duration), [this, id, broken, payload = std::move(payload)] {
    Call& call = calls_.at(id);
    if (!call.server_open || server_ == nullptr) return;
    if (broken) {
      FailAtClient(id, Arrival(call.client), absl::UnavailableError("the transfer broke"));
      if (dice_.Chance(0.5)) {  // the other side sees a reset, not an end
        call.server_open = false;
        server_->OnCallAborted(id);
        return;
      }
    }
    server_->OnPayload(id, payload, broken);
  });
}

void Network::Answer(CallId id, const Reply& reply) {
  const auto it = calls_.find(id);
  if (it == calls_.end() || !it->second.server_open) return;
  Call& call = it->second;
  call.server_open = false;
  if (call.duplicate) return;
  if (faults_->Strikes(Fault::kReplyLost)) {
    trace_->Line(NameOf(call.client), "reply_lost", call.name);
    FailAtClient(id, Arrival(call.client), absl::UnavailableError("the reply was lost"));
  } else if (std::holds_alternative<PullReply>(reply)) {
    AnswerPull(id, std::get<PullReply>(reply));
  } else {
    ReplyAt(id, Arrival(call.client), reply);
  }
}

void Network::AnswerPull(CallId id, PullReply reply) {
  const Client client = calls_.at(id).client;
  if (!reply.status.ok()) return ReplyAt(id, Arrival(client), reply);
  const absl::Time arrival = std::max(Arrival(client), world_->now() + TransferTime());
  if (faults_->Strikes(Fault::kTransferCut)) {
    reply.blocks.resize(dice_.Below(reply.blocks.size() + 1));
    reply.status = absl::UnavailableError("the transfer broke");
    trace_->Line(NameOf(client), "transfer_cut", "pull after block ", reply.first_block + reply.blocks.size());
  } else if (!reply.blocks.empty() && faults_->Strikes(Fault::kCorrupted)) {
    std::string& bytes = reply.blocks[dice_.Below(reply.blocks.size())].bytes;
    bytes[dice_.Below(bytes.size())] ^= static_cast<char>(1 + dice_.Below(255));
  }
  ReplyAt(id, arrival, reply);
}

void Network::ReplyAt(CallId id, absl::Time time, const Reply& reply) {
  world_->At(time, [this, id, reply] {
    Call& call = calls_.at(id);
    if (!call.client_open) return;
    call.client_open = false;
    if (links_[call.client].port != nullptr) links_[call.client].port->OnReply(id, reply);
  });
}

// ---------------------------------------------------------------------------------------------------- faults

void Network::Partition(Client client, absl::Duration duration, bool reset) {
  Link& link = links_[client];
  link.blocked_until = std::max(link.blocked_until, world_->now() + duration);
  if (reset) {
    CutStreams(client);
    for (auto& [id, call] : calls_) {
      if (call.client != client || !call.client_open) continue;
      FailAtClient(id, world_->now() + dice_.Between(absl::Milliseconds(1), absl::Seconds(2)),
                   absl::UnavailableError("connection reset"));
      if (call.server_open) AbortAtServer(id, world_->now() + dice_.Between(absl::Milliseconds(1), absl::Seconds(2)));
    }
  } else if (duration > kKeepalive) {
    world_->After(kKeepalive, [this, client] { CutStreams(client); });
  }
}

void Network::Heal() {
  for (Link& link : links_) link.blocked_until = absl::InfinitePast();
}

}  // namespace autoloco::sim
