// Who is there: every worker the server knows, by name, with its life, its session and when it was last heard of.
#ifndef AUTOLOCO_SERVER_CORE_MEMBERSHIP_H_
#define AUTOLOCO_SERVER_CORE_MEMBERSHIP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/core/records.h"
#include "server/core/types.h"

namespace autoloco::server {

struct Member {
  WorkerId id;
  Ticket session = 0;  // 0: no open session
  absl::Time last_seen;
  absl::Time disconnected_at;  // meaningful while session == 0
  bool restored = false;       // came back with a restart; has had no session since
  bool alive = true;           // false: left, expired or refused
  bool ready = false;          // has built its model, and has not sent its last delta: can be assigned
  // An earlier life of this worker, of whose delta for this round it has the bytes. Until it is ready.
  struct Offer {
    Incarnation incarnation = 0;
    Round round = 0;
  };
  std::optional<Offer> offer;
  absl::Time left_at;          // meaningful while !alive
  Reason reason = Reason::kJoined;
  std::string text;
  Version base_version = 0;
  Progress progress;
  std::uint64_t tokens = 0;  // of its applied deltas
  double step_seconds = 0;   // as of its last delivery, what is recorded of its speed
  double overhead_seconds = 0;
};

// What of it survives a restart.
MemberState DurablePartOf(const Member& member);

// Not thread-safe; the core's own. Iterates in name order, which is the order of everything that is summed or leased.
class Membership {
 public:
  // Null where unknown. Pointers stay valid until Forget.
  Member* Find(const std::string& name);
  const Member* Find(const std::string& name) const;
  Member* FindBySession(Ticket session);

  // Starts a new life of `name`, over whatever was known of it; its applied tokens and its speed are kept.
  Member* Begin(const std::string& name, Incarnation incarnation, Ticket session, absl::Time now);
  // A member as a restart finds it: without a session.
  Member* Restore(const std::string& name, const MemberState& state, absl::Time now);
  // Binds `member` to `session`, or to none with 0.
  void Bind(Member* member, Ticket session, absl::Time now);
  void Leave(Member* member, Reason reason, std::string text, absl::Time now);
  // Drops what is known of workers that left before `before`; returns their ids.
  std::vector<WorkerId> Forget(absl::Time before);

  std::uint32_t AliveCount() const;
  // Alive, ready, and connected, disconnected for less than `grace`, or restored: for the time of its lease a restart
  // counts as no absence of the worker.
  static bool IsEligible(const Member& member, absl::Time now, absl::Duration grace);
  std::vector<Member*> Eligible(absl::Time now, absl::Duration grace);
  // Earliest time at which a lease expires or a worker that left is forgotten.
  std::optional<absl::Time> NextDeadline(absl::Duration lease, absl::Duration memory) const;

  const std::map<std::string, Member>& all() const { return members_; }
  std::map<std::string, Member>& all() { return members_; }

 private:
  std::map<std::string, Member> members_;
  std::map<Ticket, std::string> by_session_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_MEMBERSHIP_H_
