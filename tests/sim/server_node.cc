#include "tests/sim/server_node.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "tests/sim/convert.h"

namespace autoloco::sim {
namespace {

constexpr absl::Duration kCatchUp = absl::Milliseconds(500);  // as the event loop's, after it was held up
constexpr absl::Duration kTick = absl::Milliseconds(200);

}  // namespace

ServerNode::ServerNode(const Tools& tools) : Process(tools.world), tools_(tools), dice_(tools.scenario->seed, 104) {}

void ServerNode::Start() {
  Begin();
  ++starts_;
  finished_.reset();
  sessions_.clear();
  streams_.clear();
  speakers_.clear();
  calls_.clear();
  tickets_.clear();
  asked_.clear();
  payloads_.clear();
  jobs_.clear();
  job_running_ = false;
  commit_.reset();
  timer_at_.reset();
  timers_from_ = absl::InfinitePast();
  next_ticket_ = 1;
  tools_.checkers->OnServerStarted();
  Recover();
  fold_ = tools_.disk->state;
  // What the core takes for stored decides what may be dropped: only what is there counts.
  const auto& checkpoints = tools_.disk->checkpoints;
  fold_.checkpoint.reset();
  if (!checkpoints.empty()) fold_.checkpoint = checkpoints.rbegin()->first;
  fold_.view_digest = DigestOf(parameters_.View());
  server::CoreConfig config = tools_.scenario->core;
  config.first_broadcast = broadcasts_.empty() ? version_ + 1 : broadcasts_.begin()->first;
  machine_ = std::make_unique<server::RoundMachine>(config, fold_, world()->now());
  storage_ = std::make_unique<StorageThread>(
      StorageThread::Tools{tools_.world, tools_.faults, tools_.trace, tools_.checkers, tools_.disk, tools_.bug},
      tools_.scenario->seed + starts_, [this](std::uint64_t sequence) {
        Run(absl::Microseconds(10), [this, sequence] { Step(server::RecordsStored{sequence}); });
      });
  tools_.network->AttachServer(this);
  tools_.trace->Line("server", "start", "version ", tools_.disk->state.run.version);
  Run(absl::ZeroDuration(), [this] { Step(server::TimerFired{}); });
}

void ServerNode::Kill(bool silently) {
  if (!running()) return;
  tools_.trace->Line("server", "killed");
  tools_.network->DetachServer(silently);
  storage_->Crash();
  DamageCheckpoints();
  effects_left_.reset();
  End();
}

// What a crash leaves of the checkpoint under way; or the newest stored one is damaged, while there is one before it or
// all deltas are there.
void ServerNode::DamageCheckpoints() {
  auto& checkpoints = tools_.disk->checkpoints;
  StoredCheckpoint torn;
  torn.whole = false;
  const auto* under_way = job_running_ ? std::get_if<server::StartCheckpoint>(&jobs_.front()) : nullptr;
  if (under_way != nullptr && tools_.faults->Strikes(Fault::kTornCheckpoint)) {
    checkpoints.try_emplace(under_way->snapshot.version, torn);
  } else if (tools_.disk->may_damage && checkpoints.size() + (tools_.disk->spool_whole ? 1 : 0) > 1 &&
             tools_.faults->Strikes(Fault::kTornCheckpoint)) {
    checkpoints.rbegin()->second.whole = false;
    tools_.disk->may_damage = false;
  }
}

void ServerNode::Terminate() {
  tools_.trace->Line("server", "terminated");
  Post(absl::ZeroDuration(), server::ShutdownRequested{"SIGTERM"});
}

void ServerNode::Ask(const Eviction& eviction, std::function<void(const absl::Status&)> answered) {
  Enter([this, eviction, answered = std::move(answered)] {
    const Ticket ticket = next_ticket_++;
    asked_[ticket] = {eviction, answered};
    Step(server::EvictAsked{ticket, eviction.worker, eviction.readmit});
  });
}

void ServerNode::OnContinued() { timers_from_ = world()->now() + kCatchUp; }

// ---------------------------------------------------------------------------------------------------- stepping

void ServerNode::Post(absl::Duration delay, server::Event event) {
  Run(delay, [this, event = std::move(event)] { Step(event); });
}

void ServerNode::Step(const server::Event& event) {
  std::vector<server::Effect> effects;
  machine_->Step(world()->now(), event, &effects);
  for (const server::Effect& effect : effects) {
    const auto* store = std::get_if<server::StoreRecords>(&effect);
    if (store == nullptr) continue;
    for (const server::Record& record : store->records) server::Apply(record, &fold_);
  }
  CheckState();
  const std::uint64_t my_life = life();
  for (const server::Effect& effect : effects) {
    if (effects_left_ && (*effects_left_)-- == 0) {
      tools_.faults->Count(Fault::kServerCrashAtEffect);
      tools_.trace->Line("server", "kill_point", "before effect ", effects_done_);
      Kill(tools_.faults->Strikes(Fault::kMachineLost));
    }
    if (life() != my_life) return;
    ++effects_done_;
    tools_.checkers->OnEffect(effect, tools_.disk->state);
    std::visit([this](const auto& one) { Do(one); }, effect);
    if (life() != my_life) return;
  }
  SetTimer();
}

void ServerNode::CheckState() {
  if (machine_->DurableState() == fold_) return;
  tools_.checkers->Violate("fold", "the machine's state is not what its records add up to");
}

void ServerNode::SetTimer() {
  const std::optional<absl::Time> next = machine_->NextDeadline();
  if (!next) return;
  const absl::Time at = std::max({*next, timers_from_, world()->now()}) + absl::Microseconds(50);
  if (timer_at_ && *timer_at_ <= at && *timer_at_ > world()->now()) return;
  timer_at_ = at;
  RunAt(at, [this, at] {
    if (timer_at_ == at) timer_at_.reset();
    const std::optional<absl::Time> due = machine_->NextDeadline();
    if (due && world()->now() >= std::max(*due, timers_from_)) {
      Step(server::TimerFired{});
    } else {
      SetTimer();
    }
  });
}

// ---------------------------------------------------------------------------------------------------- sessions

void ServerNode::OnMessage(StreamId stream, const ToServer& message) {
  Enter([this, stream, message] {
    if (const auto* hello = std::get_if<server::HelloReceived>(&message)) {
      const Ticket ticket = next_ticket_++;
      sessions_[stream] = ticket;
      streams_[ticket] = stream;
      speakers_[ticket] = hello->sender;
      tools_.checkers->OnHello(ticket, hello->sender.worker.name);
    }
    const auto it = sessions_.find(stream);
    if (it == sessions_.end()) return;
    server::Event event = std::visit(
        [&it](auto one) {
          one.session = it->second;
          return server::Event(one);
        },
        message);
    tools_.trace->Line("server", MessageName(message), speakers_[it->second].worker.name);
    Step(event);
  });
}

void ServerNode::OnStreamEnded(StreamId stream) {
  Enter([this, stream] {
    const auto it = sessions_.find(stream);
    if (it == sessions_.end()) return;
    const Ticket ticket = it->second;
    EndSession(ticket);
    Step(server::SessionClosed{ticket});
  });
}

void ServerNode::EndSession(Ticket session) {
  const auto it = streams_.find(session);
  if (it == streams_.end()) return;
  sessions_.erase(it->second);
  streams_.erase(it);
}

void ServerNode::Send(Ticket session, const ToWorker& message) {
  const auto it = streams_.find(session);
  if (it != streams_.end()) tools_.network->Send(it->second, message);
}

void ServerNode::Do(const server::SendWelcome& effect) {
  const server::Sender& sender = speakers_[effect.session];
  newest_[sender.worker.name] = effect.incarnation;
  worker::Welcomed welcomed{.session = 0,
                            .identity = {tools_.scenario->core.run_id, effect.incarnation},
                            .version = effect.version,
                            .heartbeat = tools_.scenario->heartbeat};
  welcomed.partial_intervals = !tools_.scenario->strict;
  welcomed.send_held = effect.send_held;
  welcomed.held_reason = effect.held_reason;
  if (effect.held_outcome) welcomed.held_outcome = ToWorkerOutcome(*effect.held_outcome);
  if (tools_.scenario->core.late.apply) welcomed.late_versions_max = tools_.scenario->core.late.versions_max;
  Send(effect.session, welcomed);
}

void ServerNode::Do(const server::SendAssignment& effect) {
  Send(effect.session, worker::Assigned{0, ToWorkerAssignment(effect.assignment)});
}

void ServerNode::Do(const server::SendRoundClosed& effect) {
  Send(effect.session, worker::RoundClosed{0, effect.round, effect.version});
}

void ServerNode::Do(const server::SendAbort& effect) {
  Send(effect.session, worker::Aborted{0, effect.round, effect.reason});
}

void ServerNode::Do(const server::SendDrain& effect) {
  Send(effect.session, worker::Drained{0, effect.run_done, effect.reason});
}

void ServerNode::Do(const server::CloseSession& effect) {
  const auto it = streams_.find(effect.session);
  if (it == streams_.end()) return;
  tools_.network->EndStream(it->second, effect.status);
  EndSession(effect.session);
  Post(absl::Microseconds(20), server::SessionClosed{effect.session});
}

// ---------------------------------------------------------------------------------------------------- calls

void ServerNode::OnCall(CallId call, const Request& request) {
  Enter([this, call, request] {
    const Ticket ticket = next_ticket_++;
    tickets_[call] = ticket;
    OpenCall& open = calls_[ticket];
    open.call = call;
    if (const auto* push = std::get_if<PushCall>(&request)) {
      server::PushOpened header = push->header;
      header.ticket = ticket;
      if (tools_.bug == Bug::kFencingOff) {
        const auto newest = newest_.find(header.sender.worker.name);
        if (newest != newest_.end()) header.sender.worker.incarnation = newest->second;
      }
      if (tools_.bug == Bug::kLedgerOffByOne) ++header.report.tokens;
      open.push = header;
      tools_.checkers->OnPushOpened(header);
      Step(header);
    } else if (const auto* asked = std::get_if<server::PushStatusAsked>(&request)) {
      server::PushStatusAsked event = *asked;
      event.ticket = ticket;
      Step(event);
    } else {
      server::PullOpened event = std::get<server::PullOpened>(request);
      event.ticket = ticket;
      Step(event);
    }
  });
}

ServerNode::OpenCall* ServerNode::FindCall(CallId call, Ticket* ticket) {
  const auto it = tickets_.find(call);
  if (it == tickets_.end()) return nullptr;
  *ticket = it->second;
  return &calls_.at(it->second);
}

void ServerNode::OnMoving(CallId call) {
  Enter([this, call] {
    Ticket ticket = 0;
    const OpenCall* open = FindCall(call, &ticket);
    if (open != nullptr && open->push) Step(server::WorkerHeard{open->push->sender});
  });
}

// The payload is checked on another thread, and its end comes as an event.
void ServerNode::OnPayload(CallId call, const std::string& payload, bool broken) {
  Enter([this, call, payload, broken] {
    Ticket ticket = 0;
    OpenCall* open = FindCall(call, &ticket);
    if (open == nullptr || open->verified) return;
    open->verified = true;
    server::PushVerified verified{.ticket = ticket, .status = absl::OkStatus(), .finite = true, .non_finite = ""};
    if (broken) {
      verified.status = absl::DataLossError("push: the stream ended early");
    } else if (Digest128(std::as_bytes(std::span(payload))) != open->push->payload_digest) {
      verified.status = absl::DataLossError("push: digest");
    } else {
      verified.norm = NormOf(payload);
      payloads_[ticket] = payload;
    }
    Post(broken ? kTick : absl::Milliseconds(dice_.Between(0.1, 3.0)), std::move(verified));
  });
}

void ServerNode::OnCallAborted(CallId call) {
  Enter([this, call] {
    Ticket ticket = 0;
    const OpenCall* open = FindCall(call, &ticket);
    if (open == nullptr) return;
    const bool push = open->push.has_value();
    tickets_.erase(call);
    calls_.erase(ticket);
    if (push) Step(server::PushCancelled{ticket});
  });
}

void ServerNode::EndCall(Ticket ticket, const Reply& reply) {
  const auto it = calls_.find(ticket);
  if (it == calls_.end()) return;
  tools_.network->Answer(it->second.call, reply);
  tickets_.erase(it->second.call);
  calls_.erase(it);
}

void ServerNode::Do(const server::AdmitPush& effect) {
  const auto it = calls_.find(effect.ticket);
  if (it != calls_.end()) tools_.network->Admit(it->second.call);
}

void ServerNode::Do(const server::AnswerPush& effect) {
  const auto it = calls_.find(effect.ticket);
  if (it != calls_.end() && effect.replayed && effect.outcome == server::PushOutcome::kAccepted) {
    const server::PushOpened& push = *it->second.push;
    ++replayed_[{push.sender.worker, push.round, push.fragment}];
  }
  tools_.trace->Line("server", "answer_push", effect.ticket, " ", server::PushOutcomeName(effect.outcome),
                     effect.replayed ? " replayed " : " ", effect.reason);
  EndCall(effect.ticket, PushReply{absl::OkStatus(), effect.outcome, effect.reason, effect.replayed});
}

void ServerNode::Do(const server::RefusePush& effect) {
  tools_.trace->Line("server", "refuse_push", effect.ticket, " ", effect.status.message());
  EndCall(effect.ticket, PushReply{.status = effect.status, .reason = ""});
}

void ServerNode::Do(const server::AnswerPushStatus& effect) {
  EndCall(effect.ticket, StatusReply{effect.status, effect.known, effect.outcome, effect.reason});
}

// A pull that waited for the disk while a commit came is told to ask again.
void ServerNode::Do(const server::ServePull& effect) {
  auto reply = std::make_shared<PullReply>(
      PullReply{absl::OkStatus(), effect.form, effect.version, effect.view_digest, effect.first_block, {}});
  const bool live = effect.form == server::PullForm::kLive;
  const auto blocks = broadcasts_.find(effect.version);
  if (!live && effect.form != server::PullForm::kNothing && blocks == broadcasts_.end()) {
    return EndCall(effect.ticket, PullReply{.status = absl::AbortedError("the version is gone")});
  }
  if (effect.header_only || effect.form == server::PullForm::kNothing) return EndCall(effect.ticket, *reply);
  if (live) return ServeLive(effect.ticket, reply);
  for (std::size_t block = effect.first_block; block < kBlocks; ++block) {
    reply->blocks.push_back({effect.version, blocks->second[block]});
  }
  EndCall(effect.ticket, *reply);
}

// Block by block, at the pace of the reader.
void ServerNode::ServeLive(Ticket ticket, const std::shared_ptr<PullReply>& reply) {
  const std::size_t block = reply->first_block + reply->blocks.size();
  if (block >= kBlocks) return EndCall(ticket, *reply);
  reply->blocks.push_back({live_versions_[block], CodedFp32(live_view_, block)});
  const absl::Duration pace = dice_.Chance(0.4) ? absl::Seconds(4) : absl::Milliseconds(40);
  Run(pace * dice_.Uniform(), [this, ticket, reply] { ServeLive(ticket, reply); });
}

void ServerNode::Do(const server::AnswerEvict& effect) {
  const auto it = asked_.find(effect.ticket);
  if (it == asked_.end()) return;
  const Asked asked = std::move(it->second);
  asked_.erase(it);
  tools_.checkers->OnEvictionAnswered(asked.eviction.worker, !asked.eviction.readmit, effect.status,
                                      tools_.disk->state);
  asked.answered(effect.status);
}

void ServerNode::Do(const server::RefusePull& effect) { EndCall(effect.ticket, PullReply{.status = effect.status}); }

// ---------------------------------------------------------------------------------------------------- storage

void ServerNode::Do(const server::DropPayload& effect) { payloads_.erase(effect.ticket); }

void ServerNode::Do(const server::DropSpooled& effect) { tools_.disk->spool.erase(effect.push); }

void ServerNode::Do(const server::DropSpooledBefore& effect) {
  auto& spool = tools_.disk->spool;
  while (!spool.empty() && spool.begin()->first.round < effect.round) {
    spool.erase(spool.begin());
    tools_.disk->spool_whole = false;
  }
}

void ServerNode::Do(const server::StoreRecords& effect) {
  StorageBatch batch;
  batch.sequence = effect.sequence;
  batch.records = effect.records;
  for (const server::Record& record : batch.records) {
    const auto* push = std::get_if<server::PushRecord>(&record);
    if (push == nullptr || push->push.outcome != server::PushOutcome::kAccepted) continue;
    const auto payload = payloads_.find(push->payload);
    if (payload == payloads_.end()) {
      tools_.checkers->Violate("payload", absl::StrCat("ticket ", push->payload, " is recorded and holds none"));
      continue;
    }
    batch.payloads.emplace_back(push->key, std::move(payload->second));
    payloads_.erase(payload);
  }
  storage_->Store(std::move(batch));
  if (tools_.bug == Bug::kAckBeforeSync) Post(absl::Microseconds(1), server::RecordsStored{effect.sequence});
}

// ---------------------------------------------------------------------------------------------------- commits

void ServerNode::Do(const server::StartCommit& effect) { AddJob(effect); }
void ServerNode::Do(const server::StartCheckpoint& effect) { AddJob(effect); }

void ServerNode::AddJob(Job job) {
  jobs_.push_back(std::move(job));
  if (!job_running_) RunJob();
}

void ServerNode::RunJob() {
  job_running_ = true;
  const auto* const commit = std::get_if<server::StartCommit>(&jobs_.front());
  const absl::Duration duration = absl::Milliseconds(dice_.Between(2.0, commit == nullptr ? 800.0 : 60.0));
  if (commit != nullptr) BeginCommit(*commit, duration);
  Run(duration, [this] {
    const Job job = jobs_.front();
    jobs_.pop_front();
    if (std::holds_alternative<server::StartCommit>(job)) {
      FinishCommit();
    } else {
      RunCheckpoint(std::get<server::StartCheckpoint>(job));
    }
    if (!running()) return;
    job_running_ = false;
    if (!jobs_.empty()) RunJob();
  });
}

void ServerNode::BeginCommit(const server::StartCommit& commit, absl::Duration duration) {
  std::vector<WeightedPayload> deltas;
  for (const server::StartCommit::Contribution& contribution : commit.contributions) {
    const auto payload = tools_.disk->spool.find(contribution.push);
    if (payload == tools_.disk->spool.end()) {
      tools_.checkers->Violate("payload", absl::StrCat("round ", commit.round, ": the delta of ",
                                                       contribution.push.worker.name, " is not in the spool"));
      continue;
    }
    deltas.push_back({contribution.push.worker.name, contribution.weight, payload->second});
    if (tools_.bug == Bug::kDoubleApply && replayed_.count(contribution.push) != 0) deltas.push_back(deltas.back());
  }
  commit_ = Commit{.round = commit.round, .parameters = parameters_, .broadcast = {}, .stats = {}};
  const auto stats = ApplyStep(commit.step, commit.method, deltas, &commit_->parameters, &commit_->broadcast);
  if (!stats.ok()) {
    tools_.checkers->Violate("commit", std::string(stats.status().message()));
    return;
  }
  commit_->stats = *stats;
  tools_.trace->Line("server", "commit", "round ", commit.round, " of ", deltas.size());
  for (std::size_t block = 0; block < kBlocks; ++block) {
    Run(duration * (static_cast<double>(block) + 0.5) / kBlocks, [this, block] {
      const std::size_t begin = block * kBlockSize;
      std::copy_n(commit_->parameters.View().begin() + static_cast<std::ptrdiff_t>(begin), kBlockSize,
                  live_view_.begin() + static_cast<std::ptrdiff_t>(begin));
      live_versions_[block] = commit_->round + 1;
    });
  }
}

void ServerNode::FinishCommit() {
  parameters_ = commit_->parameters;
  Publish(commit_->round + 1, std::move(commit_->broadcast));
  const Commit done = *std::exchange(commit_, std::nullopt);
  const std::string digest = DigestOf(parameters_.values);
  tools_.trace->Line("server", "committed", "round ", done.round, " digest ", digest);
  Step(server::CommitDone{done.round, digest, DigestOf(parameters_.View()), done.stats});
}

void ServerNode::Publish(Version version, CodedBlocks broadcast) {
  version_ = version;
  live_view_ = parameters_.View();
  live_versions_.assign(kBlocks, version);
  if (parameters_.view.empty()) broadcasts_.clear();
  broadcasts_[version] = std::move(broadcast);
  while (broadcasts_.size() > tools_.scenario->core.broadcasts_kept) broadcasts_.erase(broadcasts_.begin());
}

void ServerNode::RunCheckpoint(const server::StartCheckpoint& checkpoint) {
  const Version version = checkpoint.snapshot.version;
  if (version_ != version) {
    tools_.checkers->Violate("checkpoint",
                             absl::StrCat("of version ", version, ", the parameters are version ", version_));
  }
  if (tools_.faults->Strikes(Fault::kFailedCheckpoint)) {
    Step(server::CheckpointDone{version, absl::ResourceExhaustedError("no space left on device")});
    return;
  }
  constexpr std::size_t kKept = 3;
  auto& checkpoints = tools_.disk->checkpoints;
  checkpoints[version] = {parameters_, DigestOf(parameters_), true};
  tools_.disk->may_damage = true;
  while (checkpoints.size() > kKept) checkpoints.erase(checkpoints.begin());
  tools_.trace->Line("server", "checkpoint", "version ", version);
  Step(server::CheckpointDone{version, absl::OkStatus()});
}

// ---------------------------------------------------------------------------------------------------- what one sees

void ServerNode::Do(const server::Decision& effect) {
  ++decisions_[server::ReasonName(effect.reason)];
  tools_.trace->Line("server", server::ReasonName(effect.reason), "round ", effect.round, " ", effect.worker.name, "#",
                     effect.worker.incarnation, " ", effect.text);
}

void ServerNode::Do(const server::RoundCommitted& effect) {
  tools_.trace->Line("server", "round_committed", effect.round, " applied ", effect.applied, " of ", effect.expected);
}

void ServerNode::Do(const server::RunFinished& effect) {
  tools_.trace->Line("server", "finished", effect.exit_code, " ", effect.reason);
  finished_ = effect;
  if (!effect.completed) Run(absl::Milliseconds(200), [this] { Exit(); });
}

// The end of the process: whoever is still there is told that the server is gone.
void ServerNode::Exit() {
  for (const auto& [session, stream] : streams_) {
    tools_.network->EndStream(stream, absl::UnavailableError("the server is shutting down"));
  }
  tools_.network->DetachServer(false);
  storage_->Crash();
  End();
}

}  // namespace autoloco::sim
