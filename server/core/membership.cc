#include "server/core/membership.h"

#include <algorithm>
#include <utility>

namespace autoloco::server {

namespace {

// An evicted worker is kept out by being remembered.
bool IsForgettable(const Member& member) { return !member.alive && member.reason != Reason::kEvicted; }

}  // namespace

MemberState DurablePartOf(const Member& member) {
  return {member.id.incarnation, member.alive,  member.ready,        member.reason,
          member.text,           member.tokens, member.step_seconds, member.overhead_seconds};
}

Member* Membership::Find(const std::string& name) {
  const auto it = members_.find(name);
  return it == members_.end() ? nullptr : &it->second;
}

const Member* Membership::Find(const std::string& name) const {
  const auto it = members_.find(name);
  return it == members_.end() ? nullptr : &it->second;
}

Member* Membership::FindBySession(Ticket session) {
  const auto it = by_session_.find(session);
  return it == by_session_.end() ? nullptr : Find(it->second);
}

Member* Membership::Begin(const std::string& name, Incarnation incarnation, Ticket session, absl::Time now) {
  Member& member = members_[name];
  Bind(&member, 0, now);
  Member next;
  next.id = {name, incarnation};
  next.last_seen = now;
  next.tokens = member.tokens;
  next.step_seconds = member.step_seconds;
  next.overhead_seconds = member.overhead_seconds;
  member = std::move(next);
  Bind(&member, session, now);
  return &member;
}

Member* Membership::Restore(const std::string& name, const MemberState& state, absl::Time now) {
  Member& member = members_[name];
  member = Member{};
  member.id = {name, state.incarnation};
  member.last_seen = member.disconnected_at = member.left_at = now;
  member.restored = state.alive;
  member.alive = state.alive;
  member.ready = state.ready;
  member.reason = state.reason;
  member.text = state.text;
  member.tokens = state.tokens;
  member.step_seconds = state.step_seconds;
  member.overhead_seconds = state.overhead_seconds;
  return &member;
}

void Membership::Bind(Member* member, Ticket session, absl::Time now) {
  member->restored = false;
  if (member->session != 0) by_session_.erase(member->session);
  member->session = session;
  if (session != 0) {
    by_session_[session] = member->id.name;
  } else {
    member->disconnected_at = now;
  }
}

void Membership::Leave(Member* member, Reason reason, std::string text, absl::Time now) {
  Bind(member, 0, now);
  member->alive = false;
  member->ready = false;
  member->left_at = now;
  member->reason = reason;
  member->text = std::move(text);
}

std::vector<WorkerId> Membership::Forget(absl::Time before) {
  std::vector<WorkerId> forgotten;
  for (auto it = members_.begin(); it != members_.end();) {
    if (IsForgettable(it->second) && it->second.left_at <= before) {
      forgotten.push_back(it->second.id);
      it = members_.erase(it);
    } else {
      ++it;
    }
  }
  return forgotten;
}

std::uint32_t Membership::AliveCount() const {
  return static_cast<std::uint32_t>(
      std::count_if(members_.begin(), members_.end(), [](const auto& entry) { return entry.second.alive; }));
}

bool Membership::IsEligible(const Member& member, absl::Time now, absl::Duration grace) {
  return member.alive && member.ready &&
         (member.session != 0 || member.restored || now - member.disconnected_at < grace);
}

std::vector<Member*> Membership::Eligible(absl::Time now, absl::Duration grace) {
  std::vector<Member*> eligible;
  for (auto& [name, member] : members_) {
    if (IsEligible(member, now, grace)) eligible.push_back(&member);
  }
  return eligible;
}

std::optional<absl::Time> Membership::NextDeadline(absl::Duration lease, absl::Duration memory) const {
  std::optional<absl::Time> next;
  for (const auto& [name, member] : members_) {
    if (!member.alive && !IsForgettable(member)) continue;
    const absl::Time due = member.alive ? member.last_seen + lease : member.left_at + memory;
    if (!next || due < *next) next = due;
  }
  return next;
}

}  // namespace autoloco::server
