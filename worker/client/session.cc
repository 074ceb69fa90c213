#include "worker/client/session.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/status.h"
#include "worker/client/messages.h"

namespace autoloco::worker {
namespace {

bool IsPlainProgress(const v1::WorkerMessage& message) {
  return message.has_progress() && !message.progress().has_evaluation();
}

std::uint32_t LateVersionsMax(const v1::RunConfig& run) {
  const bool apply = run.membership().late() == v1::MembershipConfig::LATE_APPLY && !run.rounds().strict();
  return apply ? run.membership().late_versions_max() : 0;
}

}  // namespace

Session::Session(Ticket ticket, std::string worker, EventSink* sink)
    : ticket_(ticket), worker_(std::move(worker)), sink_(sink) {}

Session::~Session() {
  Cancel();
  MutexLock lock(&mutex_);
  while (open_) ended_.Wait(&mutex_);
}

void Session::Start(const std::shared_ptr<grpc::Channel>& channel, const Identity& identity,
                    const std::optional<HeldDelta>& held) {
  channel_ = channel;
  stub_ = v1::ParameterServer::NewStub(channel_);
  stub_->async()->Session(&context_, this);
  {
    MutexLock lock(&mutex_);
    open_ = true;
    held_ = true;
    AddHold();
    queue_.push_back(HelloMessage(identity, worker_, held));
    StartNextWrite();
  }
  StartRead(&incoming_);
  StartCall();
}

void Session::Send(v1::WorkerMessage message) {
  MutexLock lock(&mutex_);
  if (!held_ || closing_) return;
  if (IsPlainProgress(message) && !queue_.empty() && IsPlainProgress(queue_.back())) queue_.pop_back();
  queue_.push_back(std::move(message));
  StartNextWrite();
}

void Session::SendLast(v1::WorkerMessage message) {
  MutexLock lock(&mutex_);
  if (!held_ || closing_) return;
  queue_.push_back(std::move(message));
  closing_ = true;
  StartNextWrite();
}

void Session::StartNextWrite() {
  if (writing_ || queue_.empty()) return;
  outgoing_ = std::move(queue_.front());
  queue_.pop_front();
  writing_ = true;
  if (closing_ && queue_.empty()) {
    StartWriteLast(&outgoing_, grpc::WriteOptions());
  } else {
    StartWrite(&outgoing_);
  }
}

void Session::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  writing_ = false;
  if (ok && held_) StartNextWrite();  // not ok: the read fails as well and ends the stream
}

void Session::OnReadDone(bool ok) {
  if (!ok) {
    StopWriting();
    return;
  }
  Handle(incoming_);
  StartRead(&incoming_);
}

void Session::StopWriting() {
  bool release = false;
  {
    MutexLock lock(&mutex_);
    queue_.clear();
    release = std::exchange(held_, false);
  }
  if (release) RemoveHold();
}

void Session::OnDone(const grpc::Status& status) {
  absl::Status result = FromGrpcStatus(status);
  {
    MutexLock lock(&mutex_);
    if (!own_status_.ok()) result = own_status_;
  }
  sink_->Post(SessionEnded{.session = ticket_, .status = std::move(result)});
  MutexLock lock(&mutex_);
  open_ = false;
  ended_.NotifyAll();
}

void Session::Handle(const v1::ServerMessage& message) {
  switch (message.kind_case()) {
    case v1::ServerMessage::kWelcome: HandleWelcome(message.welcome()); return;
    case v1::ServerMessage::kAssignment:
      sink_->Post(Assigned{.session = ticket_, .assignment = ToAssignment(message.assignment())});
      return;
    case v1::ServerMessage::kRoundClosed:
      sink_->Post(RoundClosed{
          .session = ticket_, .round = message.round_closed().round(), .version = message.round_closed().version()});
      return;
    case v1::ServerMessage::kAbort:
      sink_->Post(Aborted{.session = ticket_, .round = message.abort().round(), .reason = message.abort().reason()});
      return;
    case v1::ServerMessage::kDrain:
      sink_->Post(Drained{.session = ticket_,
                          .run_done = message.drain().cause() == v1::Drain::CAUSE_RUN_DONE,
                          .reason = message.drain().reason()});
      return;
    case v1::ServerMessage::KIND_NOT_SET: return;  // a kind of message that this version does not know
  }
}

void Session::HandleWelcome(const v1::Welcome& welcome) {
  // An outcome that this worker does not know says nothing, as none.
  const absl::StatusOr<PushOutcome> outcome = ToOutcome(welcome.held_outcome());
  absl::StatusOr<RunSettings> settings = ToRunSettings(welcome.config());
  if (!settings.ok()) {
    {
      MutexLock lock(&mutex_);
      own_status_ = settings.status();
    }
    context_.TryCancel();
    return;
  }
  sink_->PostWelcome(Welcomed{.session = ticket_,
                              .identity = {.run_id = welcome.run_id(), .incarnation = welcome.incarnation()},
                              .version = welcome.version(),
                              .heartbeat = absl::Seconds(welcome.config().rounds().heartbeat_seconds()),
                              .partial_intervals = !welcome.config().rounds().strict(),
                              .late_versions_max = LateVersionsMax(welcome.config()),
                              .send_held = welcome.send_held(),
                              .held_reason = welcome.held_reason(),
                              .held_outcome = outcome.ok() ? std::optional(*outcome) : std::nullopt},
                     *std::move(settings));
}

}  // namespace autoloco::worker
