#include "tests/bench/transfer/product_arm.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/codec/delta_codec.h"
#include "server/ctl/admin_client.h"

namespace autoloco::bench {
namespace {

constexpr Ticket kSession = 1'000'000;
constexpr float kDeltaScale = 1e-3F;
constexpr absl::Duration kStatusTimeout = absl::Seconds(60);

worker::ServerClientOptions ClientOptions(const std::string& address, std::size_t streams) {
  worker::ServerClientOptions options;
  options.channel.target = address;
  options.worker = "bench";
  options.streams = streams;
  return options;
}

std::vector<float> Draw(std::size_t count) {
  const RandomStream random(1, 7);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = kDeltaScale * static_cast<float>(random.Normal(i));
  return values;
}

class ProductArm final : public Arm {
 public:
  ProductArm(const std::string& address, std::size_t streams, JoinedWorker* joined) : joined_(joined) {
    auto client = worker::ServerClient::Create(ClientOptions(address, streams), &events_);
    AUTOLOCO_CHECK(client.ok());
    client_ = *std::move(client);
  }

  absl::StatusOr<Moved> Push() override {
    AUTOLOCO_ASSIGN_OR_RETURN(const worker::PushJob job, joined_->NextPush());
    const Instant begin = MonotonicClock()->Now();
    client_->StartPush(job);
    AUTOLOCO_ASSIGN_OR_RETURN(const worker::PushEnded ended, events_.Await<worker::PushEnded>());
    const double seconds = absl::ToDoubleSeconds(MonotonicClock()->Now() - begin);
    AUTOLOCO_RETURN_IF_ERROR(ended.status);
    if (ended.outcome == worker::PushOutcome::kAccepted) return Moved{job.delta->payload.size(), seconds};
    return absl::InternalError(absl::StrCat("push: ", worker::PushOutcomeName(ended.outcome), ": ", ended.reason));
  }

  absl::StatusOr<Moved> Pull() override {
    AUTOLOCO_ASSIGN_OR_RETURN(const worker::PullJob job, joined_->NextPull());
    const Instant begin = MonotonicClock()->Now();
    client_->StartPull(job);
    AUTOLOCO_ASSIGN_OR_RETURN(const worker::PullEnded ended, events_.Await<worker::PullEnded>());
    const double seconds = absl::ToDoubleSeconds(MonotonicClock()->Now() - begin);
    AUTOLOCO_RETURN_IF_ERROR(ended.status);
    return Moved{joined_->pull_bytes(), seconds};
  }

 private:
  JoinedWorker* const joined_;
  EventQueue events_;
  std::unique_ptr<worker::ServerClient> client_;
};

}  // namespace

void EventQueue::Post(worker::Event event) {
  MutexLock lock(&mutex_);
  events_.push_back(std::move(event));
  arrived_.NotifyAll();
}

void EventQueue::PostWelcome(worker::Welcomed event, worker::RunSettings settings) {
  {
    MutexLock lock(&mutex_);
    settings_ = settings;
  }
  Post(std::move(event));
}

absl::StatusOr<worker::Event> EventQueue::Next() {
  const Instant limit = MonotonicClock()->Now() + kPatience;
  MutexLock lock(&mutex_);
  while (events_.empty()) {
    const absl::Duration left = limit - MonotonicClock()->Now();
    if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("nothing happened");
    arrived_.WaitFor(&mutex_, left);
  }
  worker::Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

worker::RunSettings EventQueue::settings() {
  MutexLock lock(&mutex_);
  return settings_;
}

absl::StatusOr<std::unique_ptr<JoinedWorker>> JoinedWorker::Join(const std::string& address) {
  std::unique_ptr<JoinedWorker> joined(new JoinedWorker());
  AUTOLOCO_RETURN_IF_ERROR(joined->Start(address));
  return joined;
}

absl::Status JoinedWorker::Start(const std::string& address) {
  AUTOLOCO_ASSIGN_OR_RETURN(session_, worker::ServerClient::Create(ClientOptions(address, 1), &events_));
  session_->OpenSession(kSession, {}, std::nullopt);
  AUTOLOCO_ASSIGN_OR_RETURN(const worker::Welcomed welcome, events_.Await<worker::Welcomed>());
  identity_ = welcome.identity;
  AUTOLOCO_ASSIGN_OR_RETURN(layout_, MakeDecoderLayout(events_.settings().shape));
  auto delta = std::make_shared<worker::EncodedDelta>();
  delta->layout_hash = layout_.hash();
  delta->payload = EncodeVector(Draw(layout_.value_count()), Codec::kFp32, 1);
  delta->digest = Digest128(std::as_bytes(std::span(delta->payload.data(), delta->payload.size())));
  delta->report.inner_steps = 1;
  delta->report.tokens = 1;
  delta_ = std::move(delta);
  AUTOLOCO_RETURN_IF_ERROR(MeasurePull(address));
  session_->SendReady(
      kSession,
      {.identity = identity_, .layout = layout_, .version = welcome.version, .data_samples = 1000, .data_hash = 1});
  return absl::OkStatus();
}

absl::Status JoinedWorker::MeasurePull(const std::string& address) {
  AUTOLOCO_ASSIGN_OR_RETURN(const server::AdminClient admin, server::AdminClient::Open(address, /*insecure=*/false));
  AUTOLOCO_ASSIGN_OR_RETURN(const worker::PullJob job, NextPull());
  session_->StartPull(job);
  AUTOLOCO_ASSIGN_OR_RETURN(const worker::PullEnded ended, events_.Await<worker::PullEnded>());
  AUTOLOCO_RETURN_IF_ERROR(ended.status);
  AUTOLOCO_ASSIGN_OR_RETURN(const v1::Status status, admin.GetStatus(kStatusTimeout));
  pull_bytes_ = status.bytes_down();
  return absl::OkStatus();
}

absl::StatusOr<worker::PushJob> JoinedWorker::NextPush() {
  AUTOLOCO_ASSIGN_OR_RETURN(const worker::Assigned assigned, events_.Await<worker::Assigned>());
  auto delta = std::make_shared<worker::EncodedDelta>(*delta_);
  delta->round = assigned.assignment.round;
  return worker::PushJob{.ticket = next_ticket_++, .identity = identity_, .delta = std::move(delta)};
}

absl::StatusOr<worker::PullJob> JoinedWorker::NextPull() {
  AUTOLOCO_ASSIGN_OR_RETURN(base_, worker::BaseBuffer::Allocate(layout_.value_count()));
  return worker::PullJob{
      .ticket = next_ticket_++, .identity = identity_, .layout_hash = layout_.hash(), .base = &base_};
}

std::unique_ptr<Arm> MakeProductArm(const std::string& address, std::size_t streams, JoinedWorker* joined) {
  return std::make_unique<ProductArm>(address, streams, joined);
}

}  // namespace autoloco::bench
