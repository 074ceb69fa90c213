// The one thread that owns the core and the table of calls. It takes an input from the inbox, steps the core, carries
// out the effects, and goes on: no locks, no races, one order of events.
#ifndef AUTOLOCO_SERVER_RUNTIME_EVENT_LOOP_H_
#define AUTOLOCO_SERVER_RUNTIME_EVENT_LOOP_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "server/core/effects.h"
#include "server/core/events.h"
#include "server/core/round_machine.h"
#include "server/runtime/call_table.h"
#include "server/runtime/commit_runner.h"
#include "server/runtime/effect_runner.h"
#include "server/runtime/inbox.h"
#include "server/runtime/inputs.h"
#include "server/runtime/payload_store.h"
#include "server/runtime/ports.h"

namespace autoloco::server {

class EventLoop {
 public:
  // All borrowed; must outlive the loop.
  struct Tools {
    const Clock* clock = nullptr;
    Inbox* inbox = nullptr;
    RoundMachine* core = nullptr;  // the loop's own from Start on
    CommitRunner* commits = nullptr;
    RecordStore* records = nullptr;
    WorkPool* pool = nullptr;
    Telemetry* telemetry = nullptr;
    const Layout* layout = nullptr;  // also read by checks under way on the pool: outlives that one too
  };
  struct Settings {
    Codec codec = Codec::kFp32;
    CallTable::Limits limits;
    std::uint64_t push_bytes_in_flight_max = 0;
    std::size_t payloads_kept = 1;  // of versions, for pulls
    int zstd_level = 1;             // of live blocks
    std::string checkpoint;         // path of the one that the run goes on from; empty: none
  };

  // What the version is that the core starts from, and what can be sent of it.
  struct Initial {
    std::string params_digest;
    std::string view_digest;
    std::vector<std::shared_ptr<const EncodedPayload>> payloads;  // oldest first
    std::shared_ptr<const LiveView> view;                         // null: versions are sent whole
  };

  EventLoop(const Tools& tools, const Settings& settings, const Initial& initial);
  // REQUIRES: stopped, or never started.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Before Start: a payload that the core's open round was given in a former process.
  void TakeOver(const KeptPayload& kept) { payloads_.Put(kept.key, kept.payload); }

  // Starts the thread.
  void Start();
  // Any thread: waits until the core has ended the run. The loop goes on serving.
  RunFinished WaitForFinish();
  // Posts StopLoop and joins. REQUIRES: no call is open (G10: gRPC has been shut down before).
  void Stop();

 private:
  static constexpr absl::Duration kTick = absl::Milliseconds(200);  // of the watchdogs, while a call is open
  // A loop that wakes up this late was held up (a stopped process, a suspended machine): what the workers sent
  // meanwhile is read for a moment before the core is told the time, or it would take all of them for dead.
  static constexpr absl::Duration kHeldUp = absl::Seconds(1);
  static constexpr absl::Duration kCatchUp = absl::Milliseconds(500);
  // At most this often Telemetry::OnStatus; what happened since the last one is told within this time, whether or not
  // anything else happens.
  static constexpr absl::Duration kStatusInterval = absl::Milliseconds(100);

  void Run();
  std::optional<Instant> NextWake() const;
  void OnTime(std::optional<Instant> wake, Instant now);  // `wake`: when the loop wanted to be woken
  // Steps the core through all events that have come up; their effects may bring more.
  void StepAll();
  void PublishFinish();
  void PublishStatus(Instant now);
  ServerStatus Status(Instant now) const;

  // One input each; those of calls go to the table as they are.
  template <typename CallInput>
  void Handle(const CallInput& input);
  void Handle(const StatusParked& input);
  void Handle(const RoundsParked& input);
  void Handle(const CommitFinished& input);
  void Handle(const CheckpointFinished& input);
  void Handle(const RecordsStored& input);
  void Handle(const StorageTrouble& input);
  void Handle(const StorageGaveUp& input);
  void Handle(const ShutdownAsked& input);
  void Handle(const CloseCalls& input);
  void Handle(const StopLoop& input);

  const Tools tools_;
  const Instant started_;

  // The loop thread's.
  std::deque<Event> events_;  // for the core, not yet stepped
  std::vector<Effect> effects_;
  PayloadStore payloads_;
  CallTable calls_;
  EffectRunner runner_;
  std::string params_digest_;  // of the newest version that was made
  std::string view_digest_;
  std::string checkpoint_;
  std::map<StorageTask, absl::Status> trouble_;  // of the last attempts at what cannot be done
  std::optional<RunFinished> gave_up_;
  bool stopping_ = false;
  Instant timers_from_;  // no TimerFired before
  Instant next_tick_;
  bool status_due_ = true;  // something happened since the last OnStatus
  Instant next_status_;     // not before

  std::thread thread_;

  Mutex mutex_;
  CondVar finish_changed_;
  std::optional<RunFinished> finished_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_EVENT_LOOP_H_
