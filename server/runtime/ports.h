// What the runtime asks of the rooms above it: storage and telemetry. main.cc plugs the real ones in; the simulation
// and tests plug in their own.
#ifndef AUTOLOCO_SERVER_RUNTIME_PORTS_H_
#define AUTOLOCO_SERVER_RUNTIME_PORTS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/codec/codec.h"
#include "server/core/effects.h"
#include "server/core/records.h"
#include "server/core/types.h"
#include "server/runtime/checkpoint_reader.h"
#include "server/runtime/payload.h"

namespace autoloco::server {

// What a checkpoint holds.
struct CheckpointContent {
  CoreSnapshot snapshot;
  // Of the version; empty: not known.
  std::string params_digest;
  std::string view_digest;              // of what every worker holds: of the parameters, where there is no view
  CheckpointReader* vectors = nullptr;  // that has not been read yet; borrowed for the call
};

struct StoredCheckpoint {
  std::string path;
  std::uint64_t bytes = 0;
};

// Called by one thread at a time, never the event loop's.
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;
  // Durable and complete when it returns OK; on an error nothing that was there before is lost. Removes checkpoints
  // beyond the number to keep, never the newest one whose tensors are all finite.
  virtual absl::StatusOr<StoredCheckpoint> Write(const CheckpointContent& content) = 0;
};

// The payload of an accepted push.
struct KeptPayload {
  PushKey key;
  std::shared_ptr<Payload> payload;  // whole
};

// What one step of the core has recorded.
struct RecordBatch {
  std::uint64_t sequence = 0;
  std::vector<Record> records;
  std::vector<KeptPayload> payloads;  // of the accepted pushes among the records
};

// Called by the event loop's thread: returns at once, the work is done elsewhere.
class RecordStore {
 public:
  virtual ~RecordStore() = default;
  // Memory for a payload of `bytes` that is coming in; let go of without Store, it leaves nothing behind.
  // RESOURCE_EXHAUSTED or UNAVAILABLE: it cannot be had now. Then StorageTrouble is posted, OK once there is room
  // again, and StorageGaveUp when there is none for the time set for that.
  virtual absl::StatusOr<std::unique_ptr<PayloadMemory>> Reserve(std::uint64_t bytes) = 0;
  // Makes the batch durable: first the payloads, then all of its records or none, after the batches before it. Then
  // RecordsStored is posted to the loop's inbox; one for several batches will do. A batch is never skipped: one that
  // cannot be stored is tried again (StorageTrouble), and those after it wait; after the time set for that
  // StorageGaveUp follows, and then nothing more. REQUIRES: the payloads' memory came from Reserve.
  virtual void Store(RecordBatch batch) = 0;
  // This payload, or all of earlier rounds, will not be needed any more.
  virtual void DropSpooled(const PushKey& push) = 0;
  virtual void DropSpooledBefore(Round round) = 0;
};

// What a disk that is full or gone keeps the server from: making records and accepted payloads durable, or taking room
// for a payload that comes in.
enum class StorageTask { kRecords, kRoom };

enum class Direction { kPush, kPull };

// Where everything that happens is seen: metrics and log lines. Thread-safe, and quick: never blocks on I/O other than
// a log line.
class Telemetry {
 public:
  virtual ~Telemetry() = default;

  virtual void OnDecision(const Decision& decision) = 0;
  virtual void OnRoundCommitted(const RoundCommitted& round) = 0;
  virtual void OnEvaluation(const EvaluationPoint& point) = 0;
  // `outcome`: a label of autoloco_pushes_total (PushOutcomeName, or "replayed", or the reason of a refusal).
  virtual void OnPushAnswered(absl::string_view outcome) = 0;
  // One transfer that moved all its bytes. wire_bytes: payload as sent; raw_bytes: the same values in fp32.
  virtual void OnTransfer(Direction direction, std::uint64_t wire_bytes, std::uint64_t raw_bytes,
                          absl::Duration duration) = 0;
  // `held_up`: the part of `duration` in which the commit waited for a checkpoint of the version before it.
  // `broadcast`: how what is sent of the new version was encoded.
  virtual void OnCommit(absl::Duration duration, absl::Duration held_up, const CodingReport& broadcast) = 0;
  virtual void OnCheckpoint(const absl::StatusOr<StoredCheckpoint>& result, absl::Duration duration) = 0;
  // One attempt at the task: every one at records; at room those that fail, and the first that succeeds after them.
  virtual void OnStorage(StorageTask task, const absl::Status& status, absl::Duration duration) = 0;
  // After every event of the loop, at most ten times a second.
  virtual void OnStatus(const RunStatus& status) = 0;
  // One call of the gRPC services began or ended; `method` such as "Push", `code` such as "OK".
  virtual void OnCallStarted(absl::string_view service, absl::string_view method) = 0;
  virtual void OnCallHandled(absl::string_view service, absl::string_view method, absl::string_view code,
                             absl::Duration duration) = 0;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_RUNTIME_PORTS_H_
