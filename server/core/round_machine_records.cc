// What of the machine survives a restart: how it is recorded, and how a machine is made of it again.
#include <algorithm>

#include "server/core/interval_policy.h"
#include "server/core/round_machine_impl.h"

namespace autoloco::server {

void RoundMachine::Impl::RecordMember(const Member& member) {
  Record(MemberRecord{member.id.name, DurablePartOf(member)});
}

// REQUIRES: the open round has an entry of this name.
void RoundMachine::Impl::RecordEntry(const std::string& name) {
  Record(EntryRecord{round_.number, name, round_.entries.at(name)});
}

void RoundMachine::Impl::RecordOpening() {
  run_changed_ = true;  // leases were given out
  Record(RoundOpenedRecord{round_});
}

CoreState RoundMachine::Impl::DurableState() const {
  CoreState state;
  state.run = state_;
  state.view_digest = view_digest_;
  state.evaluated = evaluated_;
  state.checkpoint = checkpoint_stored_;
  state.participants = participants_;
  state.data = data_;
  for (const auto& [name, member] : members_.all()) state.members[name] = DurablePartOf(member);
  if (round_open_) state.round = round_;
  state.pushes = register_;
  state.leases = ledger_.outstanding();
  state.ledger = ledger_.totals();
  return state;
}

void RoundMachine::Impl::Restore(const CoreState& state) {
  view_digest_ = state.view_digest;
  if (state_.version == 0) initial_digest_ = state.view_digest;
  evaluated_ = state.evaluated;
  checkpoint_started_ = checkpoint_stored_ = state.checkpoint;
  participants_ = state.participants;
  data_ = state.data;
  register_ = state.pushes;
  ledger_ = TokenLedger(state.leases, state.ledger);
  for (const auto& [name, member] : state.members) {
    members_.Restore(name, member, now_);
    speeds_.Restore(name, member.step_seconds, member.overhead_seconds);
  }
  if (!state_.history.empty()) last_applied_ = state_.history.back().contributors;
  if (state.round) RestoreRound(*state.round);
  // Incarnations given out after a checkpoint are not known: the shell says from where on none has been.
  if (state_.next_incarnation < config_.first_incarnation) {
    state_.next_incarnation = config_.first_incarnation;
    run_changed_ = true;
  }
}

void RoundMachine::Impl::RestoreRound(const RoundState& round) {
  static_cast<RoundState&>(round_) = round;
  round_.opened_at = round_.first_delivery_at = round_.last_delivery_at = now_;
  round_.restored = true;
  round_open_ = true;
  if (round.finishing) {
    phase_ = RunPhase::kFinishing;
    finish_deadline_ = now_ + config_.finish_timeout;
  } else {
    phase_ = round.decision ? RunPhase::kCommitting : RunPhase::kTraining;
    commit_again_ = round.decision.has_value();
    // Unless the run was made shorter meanwhile: then this round is its last.
    const bool within = round.record.first_inner_step < config_.interval.total_inner_steps;
    if (within)
      interval_text_ = TextOf(DecideInterval(config_.interval, state_.interval, round.record.first_inner_step));
  }
  for (const auto& [name, entry] : round.entries) {
    if (Member* member = members_.Find(name)) member->base_version = round.number;
  }
  RestoreEvaluation();
}

// The evaluation of the round's version, if it was not over.
void RoundMachine::Impl::RestoreEvaluation() {
  std::uint32_t parts = 0;
  std::uint32_t parts_in = 0;
  for (const auto& [name, entry] : round_.entries) {
    parts = std::max(parts, entry.assignment.evaluation_parts);
    parts_in += entry.evaluation ? 1 : 0;
  }
  if (parts_in == parts) return;
  evaluations_.Begin(state_.version, state_.inner_steps_done, parts);
  for (const auto& [name, entry] : round_.entries) {
    if (entry.evaluation) evaluations_.Add(name, *entry.evaluation);
  }
}

}  // namespace autoloco::server
