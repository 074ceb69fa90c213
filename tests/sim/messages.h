// What travels between the nodes: the events of the cores themselves, without the numbers that each side gives to its
// end of a stream or call. The shells fill those in on arrival.
#ifndef AUTOLOCO_TESTS_SIM_MESSAGES_H_
#define AUTOLOCO_TESTS_SIM_MESSAGES_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "server/core/effects.h"
#include "server/core/events.h"
#include "worker/core/events.h"

namespace autoloco::sim {

using StreamId = std::uint64_t;
using CallId = std::uint64_t;

// In a session.
using ToServer =
    std::variant<server::HelloReceived, server::ReadyReceived, server::ProgressReceived, server::GoodbyeReceived>;
using ToWorker =
    std::variant<worker::Welcomed, worker::Assigned, worker::RoundClosed, worker::Aborted, worker::Drained>;

// Calls.
struct PushCall {
  server::PushOpened header;
  std::string payload;
};
using Request = std::variant<PushCall, server::PushStatusAsked, server::PullOpened>;

struct PushReply {
  absl::Status status;
  server::PushOutcome outcome = server::PushOutcome::kAccepted;
  std::string reason;
  bool replayed = false;
};
struct StatusReply {
  absl::Status status;
  bool known = false;
  server::PushOutcome outcome = server::PushOutcome::kAccepted;
  std::string reason;
};
struct PulledBlock {
  Version version = 0;  // that it was read at, where it is live
  std::string bytes;    // coded
};
struct PullReply {
  absl::Status status;  // not OK with blocks: it was cut after them
  server::PullForm form = server::PullForm::kNothing;
  Version version = 0;
  std::string view_digest = "";
  std::size_t first_block = 0;
  std::vector<PulledBlock> blocks = {};
};
using Reply = std::variant<PushReply, StatusReply, PullReply>;

}  // namespace autoloco::sim

#endif  // AUTOLOCO_TESTS_SIM_MESSAGES_H_
