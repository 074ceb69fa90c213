#include "server/runtime/event_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace autoloco::server {
namespace {

// What an operator reads of it.
std::string TextOf(StorageTask task, const absl::Status& status) {
  return absl::StrCat(task == StorageTask::kRecords ? "nothing can be stored: " : "no room for deltas: ",
                      status.message());
}

}  // namespace

EventLoop::EventLoop(const Tools& tools, const Settings& settings, const Initial& initial)
    : tools_(tools),
      started_(tools.clock->Now()),
      payloads_(settings.push_bytes_in_flight_max, tools.records),
      calls_(settings.limits,
             PushTable::Tools{tools.layout, settings.codec, tools.pool, tools.inbox, &payloads_, tools.telemetry,
                              &events_},
             PullTable::Source{
                 tools.layout,
                 initial.view == nullptr ? nullptr : std::make_shared<LiveReader>(initial.view, settings.zstd_level),
                 settings.payloads_kept}),
      runner_(&calls_, &payloads_, tools.commits, tools.records, tools.telemetry),
      params_digest_(initial.params_digest),
      view_digest_(initial.view_digest),
      checkpoint_(settings.checkpoint),
      timers_from_(started_),
      next_tick_(started_),
      next_status_(started_) {
  for (const auto& payload : initial.payloads) calls_.pulls().Add(payload);
}

EventLoop::~EventLoop() { AUTOLOCO_CHECK(!thread_.joinable()); }

void EventLoop::Start() { thread_ = std::thread(&EventLoop::Run, this); }

RunFinished EventLoop::WaitForFinish() {
  MutexLock lock(&mutex_);
  while (!finished_.has_value()) finish_changed_.Wait(&mutex_);
  return *finished_;
}

void EventLoop::Stop() {
  tools_.inbox->Post(StopLoop{});
  thread_.join();
}

void EventLoop::Run() {
  while (!stopping_) {
    const std::optional<Instant> wake = NextWake();
    std::optional<Input> input = tools_.inbox->Take(wake);
    if (input.has_value()) std::visit([this](const auto& concrete) { Handle(concrete); }, *input);
    OnTime(wake, tools_.clock->Now());
    status_due_ = status_due_ || input.has_value() || !events_.empty();
    StepAll();
    PublishFinish();
    PublishStatus(tools_.clock->Now());
  }
  AUTOLOCO_CHECK(calls_.size() == 0);
}

std::optional<Instant> EventLoop::NextWake() const {
  std::optional<Instant> wake = tools_.core->NextDeadline();
  if (wake.has_value()) wake = std::max(*wake, timers_from_);
  if (calls_.size() > 0) wake = wake.has_value() ? std::min(*wake, next_tick_) : next_tick_;
  if (status_due_) wake = wake.has_value() ? std::min(*wake, next_status_) : next_status_;
  return wake;
}

void EventLoop::OnTime(std::optional<Instant> wake, Instant now) {
  if (wake.has_value() && now - *wake >= kHeldUp) timers_from_ = now + kCatchUp;
  const std::optional<Instant> deadline = tools_.core->NextDeadline();
  if (deadline.has_value() && now >= std::max(*deadline, timers_from_)) events_.push_back(TimerFired{});
  if (now >= next_tick_) {
    calls_.Tick(now);
    next_tick_ = now + kTick;
  }
}

void EventLoop::StepAll() {
  while (!events_.empty()) {
    const Event event = std::move(events_.front());
    events_.pop_front();
    const Instant now = tools_.clock->Now();
    effects_.clear();
    tools_.core->Step(now, event, &effects_);
    runner_.Run(effects_, now);
  }
}

void EventLoop::PublishStatus(Instant now) {
  if (!status_due_ || (now < next_status_ && !stopping_)) return;
  tools_.telemetry->OnStatus(tools_.core->Status());
  status_due_ = false;
  next_status_ = now + kStatusInterval;
}

void EventLoop::PublishFinish() {
  const std::optional<RunFinished>& finished = gave_up_.has_value() ? gave_up_ : runner_.finished();
  if (!finished.has_value()) return;
  MutexLock lock(&mutex_);
  if (finished_.has_value()) return;
  finished_ = finished;
  finish_changed_.NotifyAll();
}

ServerStatus EventLoop::Status(Instant now) const {
  ServerStatus status;
  status.run = tools_.core->Status();
  if (!trouble_.empty()) status.run.reason = TextOf(trouble_.begin()->first, trouble_.begin()->second);
  status.now = now;
  status.params_digest = params_digest_;
  status.view_digest = view_digest_;
  status.parameters = tools_.layout->value_count();
  status.checkpoint = checkpoint_;
  status.bytes_up = calls_.pushes().bytes_received();
  status.bytes_down = calls_.pulls().bytes_sent();
  status.uptime = now - started_;
  return status;
}

template <typename CallInput>
void EventLoop::Handle(const CallInput& input) {
  if constexpr (requires { calls_.On(input, Instant()); }) {
    calls_.On(input, tools_.clock->Now());
  } else {
    calls_.On(input);
  }
}

void EventLoop::Handle(const StatusParked& input) { input.call->Answer(Status(tools_.clock->Now())); }

void EventLoop::Handle(const RoundsParked& input) { input.call->Answer(tools_.core->History()); }

void EventLoop::Handle(const CommitFinished& input) {
  runner_.OnCommitFinished();
  calls_.pulls().Add(input.payload);
  params_digest_ = input.event.params_digest;
  view_digest_ = input.event.view_digest;
  events_.push_back(input.event);
}

void EventLoop::Handle(const CheckpointFinished& input) {
  if (input.result.ok()) checkpoint_ = input.result->path;
  events_.push_back(CheckpointDone{input.version, input.result.status()});
}

void EventLoop::Handle(const RecordsStored& input) { events_.push_back(input); }

void EventLoop::Handle(const StorageTrouble& input) {
  trouble_.erase(input.task);
  if (!input.status.ok()) trouble_[input.task] = input.status;
}

void EventLoop::Handle(const StorageGaveUp& input) {
  trouble_[input.task] = input.status;
  gave_up_ = RunFinished{1, false, TextOf(input.task, input.status)};
}

void EventLoop::Handle(const ShutdownAsked& input) { events_.push_back(ShutdownRequested{input.reason}); }

void EventLoop::Handle(const CloseCalls&) { calls_.Close(tools_.clock->Now()); }

void EventLoop::Handle(const StopLoop&) { stopping_ = true; }

}  // namespace autoloco::server
