// The pushes under way, from header to answer, and the streams that carry them.
//
//   push:    parked -> queued -> receiving -> checking -> checked -> answered
//   stream:  header -> waiting -> receiving -> done | cut short
//
// A push comes over one stream or several: those that announce the same delta in the same words carry one push, whose
// ticket is that of the first of them. A parked push waits for the core's word, a queued one for memory; then the
// streams fill the payload on their own, each its range, and are only watched here; a whole payload is checked on the
// pool, the core decides what becomes of it, and all streams get its answer.
//
// Streams break. The push goes on while one of them is there; with the last one it is off for the core, and what came
// of it is set aside: the next attempt is a new push for the core and brings what is missing. A push that came whole is
// answered even if nobody is there to hear it: the worker asks for the outcome.
#ifndef AUTOLOCO_SERVER_RUNTIME_PUSH_TABLE_H_
#define AUTOLOCO_SERVER_RUNTIME_PUSH_TABLE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/byte_ranges.h"
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
  PushTable(const Tools& tools, std::size_t chunk_bytes_max, absl::Duration stall_timeout)
      : tools_(tools), chunk_bytes_max_(chunk_bytes_max), stall_timeout_(stall_timeout) {}

  // Inputs, about streams by their tickets. Those with an unknown ticket return false.
  void Start(const PushStarted& input, Instant now);
  bool OnHeader(const PushHeaderRead& input, Instant now);
  bool OnMalformed(const PushMalformed& input);
  bool OnPayloadEnded(const PushPayloadEnded& input, Instant now);
  bool OnAbandoned(const PushAbandoned& input, Instant now);
  bool OnChecked(const PushChecked& input);

  // Effects, about pushes. An unknown ticket is ignored.
  void Admit(const AdmitPush& effect, Instant now);
  void Answer(const AnswerPush& effect);
  void Refuse(Ticket ticket, const absl::Status& status);

  // What has not come of the push under this key, if one is under way or set aside. All has come: one empty range at
  // its end. Nothing, or nothing is known of such a push: empty.
  std::vector<ByteRange> Missing(const PushKey& key) const;

  // Refuses all.
  void CloseAll(const absl::Status& status);
  // Cuts what does not move, admits what has waited for memory, and renews the leases of those whose bytes come.
  void Tick(Instant now);

  // Streams.
  std::size_t size() const { return streams_.size(); }
  // Payload bytes of all streams so far.
  std::uint64_t bytes_received() const;

 private:
  // A stream that ended early is judged after this time: when its caller is gone, that is known by then.
  static constexpr absl::Duration kCutShortGrace = absl::Milliseconds(300);
  // Of the stall timeout, how long a push waits for memory: the worker hears why before it gives up by itself.
  static constexpr double kQueueShare = 0.5;
  static constexpr std::size_t kMissingRangesMax = 16;

  enum class StreamState { kHeader, kWaiting, kReceiving, kCutShort, kDone };
  struct Stream {
    PushCall* call = nullptr;
    StreamState state = StreamState::kHeader;
    Ticket push = 0;  // from kWaiting on
    ByteRange range;
    std::shared_ptr<PayloadPart> part;  // from kReceiving on
    TransferWatch watch;
    absl::Status end_status;  // of kCutShort
    Instant ended;            // of kCutShort
  };
  enum class State { kParked, kQueued, kReceiving, kChecking, kChecked };
  struct Push {
    State state = State::kParked;
    PushOpened header;  // of the first stream
    std::set<Ticket> streams;
    std::shared_ptr<Payload> payload;  // from kReceiving on
    TransferWatch watch;
    Instant queued;  // since when; kQueued
    Instant alone;   // when a stream last stopped to bring bytes; kReceiving
  };
  using StreamIterator = std::map<Ticket, Stream>::iterator;
  using PushIterator = std::map<Ticket, Push>::iterator;

  PushIterator FindSame(const PushOpened& header);
  PushIterator PushOf(const Stream& stream);
  void StartReceiving(Stream* stream, const Push& push, Instant now);
  void AdmitQueued(Instant now);
  void StartCheckIfWhole(PushIterator it, Instant now);
  // Ends one stream; a push that has lost its last one is off, unless it came whole.
  void Detach(StreamIterator it, const absl::Status& status, Instant now);
  // Ends all streams with `status` and tells the core that the push is off. Its bytes are gone.
  void GiveUp(PushIterator it, const absl::Status& status);
  // Takes a stream out of the table; its call has ended.
  void Forget(StreamIterator it);
  std::size_t ReceivingStreams(const Push& push) const;
  void TickStream(StreamIterator it, Instant now);
  void TickPush(PushIterator it, Instant now);

  const Tools tools_;
  const std::size_t chunk_bytes_max_;
  const absl::Duration stall_timeout_;
  std::map<Ticket, Stream> streams_;
  std::map<Ticket, Push> pushes_;
  std::uint64_t bytes_of_ended_ = 0;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_PUSH_TABLE_H_
