// The server's core: who takes part, what each worker does next, when a round closes and with which deltas.
//
// Pure: the same configuration, state and sequence of (now, event) give the same effects, bit for bit. No clock,
// thread, file, socket, tensor or log; the shell (server/runtime) and the simulation drive it alike.
// server/core/README.md draws the states.
#ifndef AUTOLOCO_SERVER_CORE_ROUND_MACHINE_H_
#define AUTOLOCO_SERVER_CORE_ROUND_MACHINE_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "server/core/config.h"
#include "server/core/core_state.h"
#include "server/core/effects.h"
#include "server/core/events.h"
#include "server/core/types.h"

namespace autoloco::server {

// Not thread-safe: one thread, the event loop's.
class RoundMachine {
 public:
  // Goes on from `state` (a default one: a new run): an open round stays open, a decided one is committed, and members
  // that were alive have the time of a lease from `now` on to be heard of again.
  RoundMachine(const CoreConfig& config, const CoreState& state, absl::Time now);
  ~RoundMachine();
  RoundMachine(const RoundMachine&) = delete;
  RoundMachine& operator=(const RoundMachine&) = delete;

  // Appends what must happen, in order. REQUIRES: `now` never decreases.
  void Step(absl::Time now, const Event& event, std::vector<Effect>* effects);

  // The shell posts TimerFired at this time or later; none: nothing to wait for. May change with every Step.
  std::optional<absl::Time> NextDeadline() const;

  RunStatus Status() const;

  // The state that the fold of all records emitted so far is (core_state.h).
  CoreState DurableState() const;

  // Every committed round, oldest first. Borrowed until the next Step.
  const std::vector<RoundRecord>& History() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_CORE_ROUND_MACHINE_H_
