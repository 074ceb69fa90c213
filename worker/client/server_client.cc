#include "worker/client/server_client.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/rpc/credentials.h"
#include "worker/client/messages.h"
#include "worker/client/pull.h"

namespace autoloco::worker {

absl::StatusOr<std::unique_ptr<ServerClient>> ServerClient::Create(const ServerClientOptions& options,
                                                                   EventSink* sink) {
  AUTOLOCO_RETURN_IF_ERROR(ClientCredentials(options.channel.target, options.channel.insecure).status());
  return std::unique_ptr<ServerClient>(new ServerClient(options, sink));
}

ServerClient::ServerClient(const ServerClientOptions& options, EventSink* sink)
    : options_(options), sink_(sink), pull_connections_(options.channel), push_connections_(options.channel) {}

ServerClient::~ServerClient() {
  {
    MutexLock lock(&mutex_);
    for (const auto& [ticket, transfer] : transfers_) transfer->Cancel();
  }
  session_.reset();
}

// ---------------------------------------------------------------------------------------------------- session

void ServerClient::OpenSession(Ticket session, const Identity& identity, const std::optional<HeldDelta>& held) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = MakeChannel(options_.channel);
  if (!channel.ok()) {
    sink_->Post(SessionEnded{.session = session, .status = channel.status()});
    return;
  }
  session_ = std::make_unique<Session>(session, options_.worker, sink_);
  session_ticket_ = session;
  session_->Start(*channel, identity, held);
}

Session* ServerClient::Find(Ticket session) { return session == session_ticket_ ? session_.get() : nullptr; }

void ServerClient::CloseSession(Ticket session) {
  if (Session* found = Find(session); found != nullptr) found->Cancel();
}

void ServerClient::SendReady(Ticket session, const ReadyReport& report) {
  if (Session* found = Find(session); found != nullptr) found->Send(ReadyMessage(report, options_.worker));
}

void ServerClient::SendProgress(Ticket session, const ProgressReport& report) {
  if (Session* found = Find(session); found != nullptr) found->Send(ProgressMessage(report, options_.worker));
}

void ServerClient::SendGoodbye(Ticket session, const Identity& identity, const std::string& reason) {
  if (Session* found = Find(session); found != nullptr) {
    found->SendLast(GoodbyeMessage(identity, options_.worker, reason));
  }
}

// ---------------------------------------------------------------------------------------------------- transfers

std::shared_ptr<Transfer> ServerClient::NewTransfer(Ticket ticket) {
  auto transfer = std::make_shared<Transfer>(options_.stall_timeout);
  MutexLock lock(&mutex_);
  transfers_[ticket] = transfer;
  return transfer;
}

void ServerClient::CancelTransfer(Ticket ticket) {
  MutexLock lock(&mutex_);
  const auto it = transfers_.find(ticket);
  if (it != transfers_.end()) it->second->Cancel();
}

void ServerClient::EndTransfer(Ticket ticket) {
  MutexLock lock(&mutex_);
  transfers_.erase(ticket);
}

void ServerClient::StartPull(const PullJob& job) {
  pull_pool_.Post([this, job, transfer = NewTransfer(job.ticket)] { Pull(job, transfer.get()); });
}

void ServerClient::CancelPull(Ticket ticket) { CancelTransfer(ticket); }

void ServerClient::StartPush(const PushJob& job) {
  push_pool_.Post([this, job, transfer = NewTransfer(job.ticket)] { Push(job, transfer.get()); });
}

void ServerClient::AskPushStatus(Ticket ticket, const Identity& identity, Round round) {
  const PushQuestion question{.ticket = ticket, .identity = identity, .round = round};
  push_pool_.Post([this, question, transfer = NewTransfer(ticket)] { Ask(question, transfer.get()); });
}

void ServerClient::CancelPush(Ticket ticket) { CancelTransfer(ticket); }

void ServerClient::Pull(const PullJob& job, Transfer* transfer) {
  PullEnded ended{.ticket = job.ticket, .status = absl::OkStatus(), .probe = job.probe};
  const auto channels = pull_connections_.Get(options_.streams);
  if (channels.ok()) {
    ended = RunPull(*channels, options_.worker, job, transfer);
  } else {
    ended.status = channels.status();
  }
  pull_connections_.Ended(ended.status);
  EndTransfer(job.ticket);
  sink_->Post(std::move(ended));
}

void ServerClient::Push(const PushJob& job, Transfer* transfer) {
  PushEnded ended{.ticket = job.ticket, .status = absl::OkStatus(), .outcome = PushOutcome::kAccepted, .reason = ""};
  auto channels = push_connections_.Get(options_.streams);
  if (channels.ok()) {
    ended = RunPush({*std::move(channels), TakeMissing(job)}, options_.worker, job, transfer);
  } else {
    ended.status = channels.status();
  }
  push_connections_.Ended(ended.status);
  EndTransfer(job.ticket);
  sink_->Post(std::move(ended));
}

std::vector<ByteRange> ServerClient::TakeMissing(const PushJob& job) {
  const std::optional<PartlySent> sent = std::exchange(partly_sent_, std::nullopt);
  if (!sent || sent->identity != job.identity || sent->round != job.delta->round) return {};
  return sent->missing;
}

void ServerClient::Ask(const PushQuestion& question, Transfer* transfer) {
  PushStatusEnded ended{.ticket = question.ticket,
                        .status = absl::OkStatus(),
                        .known = false,
                        .outcome = PushOutcome::kAccepted,
                        .reason = ""};
  const auto channels = push_connections_.Get(1);
  std::vector<ByteRange> missing;
  if (channels.ok()) {
    ended = RunPushStatus(v1::ParameterServer::NewStub(channels->front()).get(), options_.worker, question,
                          options_.control_timeout, transfer, &missing);
  } else {
    ended.status = channels.status();
  }
  partly_sent_ = PartlySent{question.identity, question.round, std::move(missing)};
  push_connections_.Ended(ended.status);
  EndTransfer(question.ticket);
  sink_->Post(std::move(ended));
}

}  // namespace autoloco::worker
