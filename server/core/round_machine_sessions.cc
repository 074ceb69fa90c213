// Sessions: joining, reconnecting, being heard of, leaving.
//
// A Hello alone fences nobody out: it may have been on its way for long, of a process or an attempt that is no more.
// The new life of a worker that is alive is a claim until something arrives under its incarnation, which proves that
// the Welcome was heard.
#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "server/core/round_machine_impl.h"

namespace autoloco::server {

void RoundMachine::Impl::On(const HelloReceived& hello) {
  if (members_.FindBySession(hello.session) != nullptr || claims_.count(hello.session) != 0) {
    Emit(CloseSession{hello.session, absl::InvalidArgumentError("a session has one Hello")});
    return;
  }
  const absl::Status status = CheckHello(hello);
  if (!status.ok()) {
    RefuseSession(hello.session, hello.sender.worker, status);
  } else if (hello.sender.worker.incarnation == 0) {
    Join(hello);
  } else {
    Reconnect(hello);
  }
}

absl::Status RoundMachine::Impl::CheckHello(const HelloReceived& hello) const {
  if (hello.protocol_version != config_.protocol_version) {
    return absl::FailedPreconditionError(absl::StrCat("protocol version: the server speaks ", config_.protocol_version,
                                                      ", the worker ", hello.protocol_version));
  }
  if (!hello.sender.run_id.empty() && hello.sender.run_id != config_.run_id) {
    return absl::FailedPreconditionError(
        absl::StrCat("run id: this is run ", config_.run_id, ", the worker wants ", hello.sender.run_id));
  }
  if (!IsValidWorkerName(hello.sender.worker.name)) {
    return absl::InvalidArgumentError("worker name: want [a-zA-Z0-9_.-]{1,64}");
  }
  AUTOLOCO_RETURN_IF_ERROR(CheckLife(hello.sender.worker));
  if (Stopping() && phase_ != RunPhase::kDone) return absl::UnavailableError("the server is shutting down");
  return absl::OkStatus();
}

// A life that this start has not given out is of a run that went on before: its versions must not be lost in silence.
absl::Status RoundMachine::Impl::CheckLife(const WorkerId& id) const {
  const bool given_out = id.incarnation >= config_.first_incarnation && id.incarnation < state_.next_incarnation;
  if (!config_.began_anew || id.incarnation == 0 || given_out) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "run lost: the server has begun run ", config_.run_id, " anew, and ", id.name, "#", id.incarnation,
      " has taken part in it before: start the server with the state folder as it was (or from a checkpoint, "
      "--resume=PATH); to give that progress up, restart the workers"));
}

// Whether a worker that is not there yet may come.
absl::Status RoundMachine::Impl::CheckRoomFor(const std::string& name) const {
  const Member* known = members_.Find(name);
  const bool takes_over = known != nullptr && known->alive;
  if (config_.strict && !participants_.empty() && participants_.count(name) == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "strict run: its workers are ", absl::StrJoin(participants_, ", "), "; ", name, " is not one of them"));
  }
  if (known != nullptr && !known->alive && known->reason == Reason::kEvicted)
    return absl::PermissionDeniedError(known->text);
  if (takes_over) return absl::OkStatus();
  const std::uint32_t alive = members_.AliveCount();
  if (config_.strict && participants_.empty() && alive >= config_.min_workers) {
    return absl::FailedPreconditionError(
        absl::StrCat("strict run: it has its ", config_.min_workers, " workers already"));
  }
  if (alive >= config_.max_workers) {
    return absl::ResourceExhaustedError(absl::StrCat("the server has ", alive, " workers, its limit (max_workers)"));
  }
  return absl::OkStatus();
}

void RoundMachine::Impl::Join(const HelloReceived& hello) {
  const std::string& name = hello.sender.worker.name;
  const absl::Status room = CheckRoomFor(name);
  if (!room.ok()) {
    RefuseSession(hello.session, hello.sender.worker, room);
    return;
  }
  const WorkerId id{name, state_.next_incarnation++};
  run_changed_ = true;
  const Claim claim{id, Welcome(hello, id)};
  const Member* known = members_.Find(name);
  if (known != nullptr && known->alive) {
    claims_[hello.session] = claim;
  } else {
    BeginLife(hello.session, claim);
  }
}

void RoundMachine::Impl::BeginLife(Ticket session, const Claim& claim) {
  LoseLeasesOf(claim.id.name);
  Member* member = members_.Begin(claim.id.name, claim.id.incarnation, session, now_);
  member->offer = claim.offer;
  RecordMember(*member);
  if (ended_) Emit(SendDrain{session, phase_ == RunPhase::kDone, "the run is complete"});
}

void RoundMachine::Impl::TakeOverIfClaimed(const WorkerId& id) {
  const auto found =
      std::find_if(claims_.begin(), claims_.end(), [&id](const auto& one) { return one.second.id == id; });
  if (found == claims_.end()) return;
  const auto [session, claim] = *found;
  claims_.erase(found);
  const Member* known = members_.Find(id.name);
  if (known != nullptr && !known->alive && known->reason == Reason::kEvicted) {
    RefuseSession(session, id, absl::PermissionDeniedError(known->text));
    return;
  }
  const absl::Status replaced = absl::FailedPreconditionError(absl::StrCat(
      "incarnation replaced: ", id.name, " joined again as incarnation ", id.incarnation, "; is the name used twice?"));
  for (auto it = claims_.begin(); it != claims_.end();) {
    const bool older = it->second.id.name == id.name && it->second.id.incarnation < id.incarnation;
    if (older) RefuseSession(it->first, it->second.id, replaced);
    it = older ? claims_.erase(it) : std::next(it);
  }
  if (known != nullptr && known->alive) {
    Decide(DecisionKind::kMembership, Reason::kReplaced, known->id, absl::StrCat("by incarnation ", id.incarnation));
    if (known->session != 0) Emit(CloseSession{known->session, replaced});
  }
  BeginLife(session, claim);
}

std::optional<Member::Offer> RoundMachine::Impl::Welcome(const HelloReceived& hello, const WorkerId& id) {
  SendWelcome welcome{hello.session, id.incarnation, state_.version, view_digest_};
  if (hello.held) {
    const RecordedPush* const recorded =
        register_.Find({{id.name, hello.held->incarnation}, hello.held->round, hello.held->fragment});
    const bool ours = hello.held->run_id == config_.run_id;
    if (ours && recorded != nullptr) welcome.held_outcome = recorded->outcome;
    welcome.held_reason = WhyNotHeld(hello);
    welcome.send_held = welcome.held_reason.empty();
    Decide(DecisionKind::kMembership, Reason::kOffered, id,
           absl::StrCat("of incarnation ", hello.held->incarnation, " for round ", hello.held->round, ": ",
                        welcome.send_held ? "awaited" : welcome.held_reason));
  }
  std::optional<Member::Offer> offer;
  if (welcome.send_held) offer = Member::Offer{hello.held->incarnation, hello.held->round};
  Emit(std::move(welcome));
  return offer;
}

std::string RoundMachine::Impl::WhyNotHeld(const HelloReceived& hello) const {
  const HeldDelta& held = *hello.held;
  if (held.run_id != config_.run_id) return absl::StrCat("it is of run ", held.run_id);
  const std::string& name = hello.sender.worker.name;
  if (const RecordedPush* recorded = register_.Find({{name, held.incarnation}, held.round, held.fragment})) {
    return absl::StrCat("it is recorded as ", PushOutcomeName(recorded->outcome));
  }
  if (phase_ != RunPhase::kTraining || held.round != round_.number) {
    return absl::StrCat("round ", held.round, " is not open");
  }
  const auto it = round_.entries.find(name);
  if (it == round_.entries.end() || it->second.incarnation != held.incarnation) {
    return absl::StrCat("that incarnation has no part in round ", held.round);
  }
  if (it->second.delivered || it->second.rejected) return absl::StrCat("round ", held.round, " has one already");
  return "";
}

bool RoundMachine::Impl::SpeaksFor(const Member& member, const WorkerId& worker) {
  return member.id == worker ||
         (member.offer && member.id.name == worker.name && member.offer->incarnation == worker.incarnation);
}

void RoundMachine::Impl::Reconnect(const HelloReceived& hello) {
  const WorkerId& id = hello.sender.worker;
  Member* member = members_.Find(id.name);
  if (member != nullptr && member->id.incarnation > id.incarnation && member->alive) {
    RefuseSession(hello.session, id,
                  absl::FailedPreconditionError(
                      absl::StrCat("incarnation replaced: ", id.name, " is now incarnation ", member->id.incarnation)));
    return;
  }
  if (member == nullptr || member->id != id || !member->alive) {
    RefuseSession(hello.session, id,
                  absl::FailedPreconditionError(absl::StrCat("incarnation expired: ", id.name, "#", id.incarnation,
                                                             " is not known (any more); join anew")));
    return;
  }
  if (member->session != 0) {
    Emit(CloseSession{member->session, absl::AbortedError("a newer session of the same worker took over")});
  }
  members_.Bind(member, hello.session, now_);
  member->last_seen = now_;
  Decide(DecisionKind::kMembership, Reason::kReconnected, id, "");
  member->offer = Welcome(hello, id);
  ResendAssignment(*member);
  InheritInterval(*member);  // it may have become ready while the server before this one shut down
  JoinOpenRound(*member);
  if (ended_) Emit(SendDrain{member->session, phase_ == RunPhase::kDone, "the run is complete"});
}

// What a reconnected worker may have missed.
void RoundMachine::Impl::ResendAssignment(const Member& member) {
  if (phase_ != RunPhase::kTraining && phase_ != RunPhase::kFinishing) return;
  const auto it = round_.entries.find(member.id.name);
  if (it == round_.entries.end() || it->second.incarnation != member.id.incarnation) return;
  if (it->second.delivered || it->second.rejected) return;
  if (phase_ == RunPhase::kFinishing && evaluations_.Has(member.id.name)) return;
  Emit(SendAssignment{member.session, it->second.assignment});
}

bool RoundMachine::Impl::DataIsOpen() const {
  if (state_.version > 0) return false;
  for (const auto& [name, member] : members_.all()) {
    if (member.alive && member.ready) return false;
  }
  return true;
}

absl::Status RoundMachine::Impl::CheckReady(const ReadyReceived& ready) const {
  const std::string difference = FirstDifference(config_.layout, ready.layout);
  if (!difference.empty()) return absl::FailedPreconditionError(absl::StrCat("layout: ", difference));
  if (ready.layout.hash() != config_.layout.hash()) {
    return absl::FailedPreconditionError("layout: equal tensors, but another hash");
  }
  if (ready.data_samples == 0) return absl::FailedPreconditionError("data: the worker has no training sample");
  if (config_.shared_data && data_ && !DataIsOpen() && *data_ != DataIdentity{ready.data_samples, ready.data_hash}) {
    return absl::FailedPreconditionError(
        absl::StrCat("data: workers share one dataset (data.sharing); the run's has ", data_->samples,
                     " samples and hash ", absl::Hex(data_->hash, absl::kZeroPad16), ", this worker's ",
                     ready.data_samples, " and ", absl::Hex(ready.data_hash, absl::kZeroPad16)));
  }
  return absl::OkStatus();
}

void RoundMachine::Impl::On(const ReadyReceived& ready) {
  Member* member = Speaker(ready.session, ready.sender);
  if (member == nullptr || member->ready) return;
  const absl::Status status = CheckReady(ready);
  if (!status.ok()) {
    RefuseSession(ready.session, member->id, status);
    Leave(member, Reason::kRefused, std::string(status.message()));
    return;
  }
  data_ = DataIdentity{ready.data_samples, ready.data_hash};
  run_changed_ = true;
  member->ready = true;
  member->offer.reset();
  member->base_version = ready.version;
  RecordMember(*member);
  Decide(DecisionKind::kMembership, Reason::kJoined, member->id, absl::StrCat("holds version ", ready.version));
  InheritInterval(*member);
  JoinOpenRound(*member);
}

// Strict mode: the successor of a lost worker does its interval, since no other may.
void RoundMachine::Impl::InheritInterval(const Member& member) {
  if (!config_.strict || phase_ != RunPhase::kTraining || !member.ready) return;
  const auto it = round_.entries.find(member.id.name);
  if (it == round_.entries.end() || it->second.delivered || it->second.incarnation == member.id.incarnation) return;
  ledger_.Lose(round_.number, {member.id.name, it->second.incarnation});
  it->second.incarnation = member.id.incarnation;
  OpenLease(member.id, it->second.assignment);
  it->second.rejected = false;
  RecordEntry(member.id.name);
  Decide(DecisionKind::kRound, Reason::kReassigned, member.id, "");
  Emit(SendAssignment{member.session, it->second.assignment});
}

void RoundMachine::Impl::On(const ProgressReceived& progress) {
  Member* member = Speaker(progress.session, progress.sender);
  if (member == nullptr) return;
  member->progress = progress.progress;
  member->progress.evaluation.reset();
  LearnFromProgress(member->id.name, member->progress);
  if (progress.progress.evaluation) TakeEvaluation(member->id, *progress.progress.evaluation);
}

void RoundMachine::Impl::On(const GoodbyeReceived& goodbye) {
  Member* member = Speaker(goodbye.session, goodbye.sender);
  if (member == nullptr) return;
  Emit(CloseSession{goodbye.session, absl::OkStatus()});
  Decide(DecisionKind::kMembership, Reason::kGoodbye, member->id, goodbye.reason);
  Leave(member, Reason::kGoodbye, goodbye.reason);
}

void RoundMachine::Impl::On(const SessionClosed& closed) {
  claims_.erase(closed.session);
  Member* member = members_.FindBySession(closed.session);
  if (member == nullptr) return;
  members_.Bind(member, 0, now_);
  Decide(DecisionKind::kMembership, Reason::kSessionBroken, member->id, "its lease runs on");
}

void RoundMachine::Impl::On(const WorkerHeard& heard) {
  Member* member = members_.Find(heard.sender.worker.name);
  if (member != nullptr && member->alive && SpeaksFor(*member, heard.sender.worker)) member->last_seen = now_;
}

void RoundMachine::Impl::ExpireLeases() {
  for (auto& [name, member] : members_.all()) {
    if (!member.alive || now_ - member.last_seen < config_.lease) continue;
    const std::string text = absl::StrCat("not heard of for ", absl::FormatDuration(now_ - member.last_seen));
    if (member.session != 0) {
      Emit(CloseSession{member.session, absl::FailedPreconditionError(absl::StrCat("incarnation expired: ", name,
                                                                                   " was ", text, "; join anew"))});
    }
    Decide(DecisionKind::kMembership, Reason::kLeaseExpired, member.id, text);
    Leave(&member, Reason::kLeaseExpired, text);
  }
  for (const WorkerId& id : members_.Forget(now_ - absl::Hours(1))) {
    Record(MemberForgottenRecord{id.name});
    speeds_.Forget(id.name);
    Decide(DecisionKind::kMembership, Reason::kForgotten, id, "");
  }
}

void RoundMachine::Impl::Leave(Member* member, Reason reason, std::string text) {
  members_.Leave(member, reason, std::move(text), now_);
  LoseLeasesOf(member->id.name);
  RecordMember(*member);
}

Member* RoundMachine::Impl::Speaker(Ticket session, const Sender& sender) {
  if (claims_.count(session) != 0 && sender.run_id == config_.run_id) TakeOverIfClaimed(sender.worker);
  Member* member = members_.FindBySession(session);
  if (member == nullptr) return nullptr;  // a message that crossed the end of its session
  if (sender.run_id != config_.run_id || sender.worker != member->id) {
    RefuseSession(
        session, sender.worker,
        absl::InvalidArgumentError(absl::StrCat(
            "identity: this session is ", member->id.name, "#", member->id.incarnation, " of run ", config_.run_id,
            ", the message is from ", sender.worker.name, "#", sender.worker.incarnation, " of run ", sender.run_id)));
    members_.Bind(member, 0, now_);
    return nullptr;
  }
  member->last_seen = now_;
  return member;
}

void RoundMachine::Impl::RefuseSession(Ticket session, const WorkerId& worker, const absl::Status& status) {
  Decide(DecisionKind::kMembership, Reason::kRefused, worker, std::string(status.message()));
  Emit(CloseSession{session, status});
}

}  // namespace autoloco::server
