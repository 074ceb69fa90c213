// What the runtime asks of the room above it: the connection to the server. worker/client speaks gRPC behind it; tests
// plug in their own.
#ifndef AUTOLOCO_WORKER_RUNTIME_PORTS_H_
#define AUTOLOCO_WORKER_RUNTIME_PORTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/codec/delta_codec.h"
#include "common/tensor/layout.h"
#include "worker/core/events.h"
#include "worker/core/types.h"
#include "worker/runtime/base_buffer.h"
#include "worker/runtime/run_settings.h"

namespace autoloco::worker {

// Where events go. Thread-safe; never blocks.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void Post(Event event) = 0;
  // The settings of a run never change: others than those of the first Welcome end the session.
  virtual void PostWelcome(Welcomed event, RunSettings settings) = 0;
};

// Everything that Ready says.
struct ReadyReport {
  Identity identity;
  Layout layout;
  Version version = 0;
  std::uint64_t data_samples = 0;
  std::uint64_t data_hash = 0;
};

// Everything that Progress says.
struct ProgressReport {
  Identity identity;
  WorkerPhase phase = WorkerPhase::kJoining;
  Round round = 0;
  std::uint32_t steps_done = 0;
  double loss = 0;
  double tokens_per_second = 0;
  double compute_share = 0;
  std::optional<EvaluationPart> evaluation;
};

struct PullJob {
  Ticket ticket = 0;
  Identity identity = {};
  bool probe = false;  // nothing is transferred
  std::uint64_t layout_hash = 0;
  Codec broadcast = Codec::kFp32;  // how broadcasts are coded
  BaseBuffer* base = nullptr;      // says what is held; written unless probe; borrowed until PullEnded
};

// A delta, encoded once and sent as often as it takes.
struct EncodedDelta {
  Round round = 0;
  std::uint64_t layout_hash = 0;
  Codec codec = Codec::kFp32;
  std::string payload;
  std::string digest;  // hex XXH3-128 of the payload
  IntervalReport report;
};

struct PushJob {
  Ticket ticket = 0;
  Identity identity = {};
  bool leaving = false;
  std::shared_ptr<const EncodedDelta> delta;
};

// The methods return at once; what comes of them arrives as events. Called by the run loop's thread. What is named by a
// session or ticket that is over is ignored.
class ServerConnection {
 public:
  virtual ~ServerConnection() = default;

  // `held`: named in Hello.
  virtual void OpenSession(Ticket session, const Identity& identity, const std::optional<HeldDelta>& held) = 0;
  virtual void CloseSession(Ticket session) = 0;
  virtual void SendReady(Ticket session, const ReadyReport& report) = 0;
  virtual void SendProgress(Ticket session, const ProgressReport& report) = 0;
  virtual void SendGoodbye(Ticket session, const Identity& identity, const std::string& reason) = 0;

  // Pulls run one after another, so that a cancelled one has let go of `base` before the next one writes it.
  virtual void StartPull(const PullJob& job) = 0;
  virtual void CancelPull(Ticket ticket) = 0;

  virtual void StartPush(const PushJob& job) = 0;
  virtual void AskPushStatus(Ticket ticket, const Identity& identity, Round round) = 0;
  virtual void CancelPush(Ticket ticket) = 0;
};

}  // namespace autoloco::worker

#endif  // AUTOLOCO_WORKER_RUNTIME_PORTS_H_
