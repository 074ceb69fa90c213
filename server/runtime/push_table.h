// The pushes under way, from header to answer.
//
//   header -> parked -> receiving -> (ended early) -> checking -> checked -> answered
//
// A parked push waits for the core's word; a receiving one fills its payload on its own and is only watched here; a
// whole payload is checked on the pool; the core decides what becomes of it.
#ifndef AUTOLOCO_SERVER_RUNTIME_PUSH_TABLE_H_
#define AUTOLOCO_SERVER_RUNTIME_PUSH_TABLE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/parallel.h"
#include "common/codec/delta_codec.h"
#include "common/tensor/layout.h"
#include "server/core/events.h"
#include "server/runtime/calls.h"
#include "server/runtime/inbox.h"
#include "server/runtime/inputs.h"
#include "server/runtime/payload_store.h"
#include "server/runtime/ports.h"
#include "server/runtime/transfer_watch.h"

namespace autoloco::server {

// Loop thread only.
class PushTable {
 public:
  // All borrowed. Checked payloads come back through `inbox`; events for the core are appended to `events`.
  struct Tools {
    const Layout* layout = nullptr;
    Codec codec = Codec::kFp32;
    WorkPool* pool = nullptr;
    Inbox* inbox = nullptr;
    PayloadStore* payloads = nullptr;
    Telemetry* telemetry = nullptr;
    std::deque<Event>* events = nullptr;
  };
  PushTable(const Tools& tools, absl::Duration stall_timeout) : tools_(tools), stall_timeout_(stall_timeout) {}

  // Inputs. Those with an unknown ticket return false.
  void Start(const PushStarted& input, Instant now);
  bool OnHeader(const PushHeaderRead& input);
  bool OnMalformed(const PushMalformed& input);
  bool OnPayloadEnded(const PushPayloadEnded& input, Instant now);
  bool OnAbandoned(const PushAbandoned& input);
  bool OnChecked(const PushChecked& input);

  // Effects. An unknown ticket is ignored.
  void Admit(const AdmitPush& effect, Instant now);
  void Answer(const AnswerPush& effect);
  void Refuse(Ticket ticket, const absl::Status& status);

  // Refuses all.
  void CloseAll(const absl::Status& status);
  // Cuts what does not move, and renews the leases of those whose bytes do.
  void Tick(Instant now);

  std::size_t size() const { return pushes_.size(); }
  // Payload bytes of all pushes so far, whole or not.
  std::uint64_t bytes_received() const;

 private:
  enum class State { kHeader, kParked, kReceiving, kEndedEarly, kChecking, kChecked };
  struct Push {
    PushCall* call = nullptr;
    State state = State::kHeader;
    PushOpened header;
    std::shared_ptr<Payload> payload;  // from kReceiving on
    TransferWatch watch;
    absl::Status end_status;  // of kEndedEarly
  };
  using Iterator = std::map<Ticket, Push>::iterator;

  void StartCheck(Iterator it);
  void CutIfStalled(Iterator it, std::uint64_t received, Instant now);
  // Ends the call with `status`, drops the payload and tells the core, if it knows the push, that it is off.
  void GiveUp(Iterator it, const absl::Status& status);
  void Forget(Iterator it);

  const Tools tools_;
  const absl::Duration stall_timeout_;
  std::map<Ticket, Push> pushes_;
  std::uint64_t bytes_of_ended_ = 0;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_PUSH_TABLE_H_
