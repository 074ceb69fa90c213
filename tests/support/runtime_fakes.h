// Stand-ins for what surrounds the server's runtime: calls that record how they are answered, telemetry that counts, a
// checkpoint store that remembers.
#ifndef AUTOLOCO_TESTS_SUPPORT_RUNTIME_FAKES_H_
#define AUTOLOCO_TESTS_SUPPORT_RUNTIME_FAKES_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "server/runtime/calls.h"
#include "server/runtime/ports.h"

namespace autoloco::server {

// A clock that is set by hand. Thread-safe.
class ManualClock final : public Clock {
 public:
  Instant Now() const override {
    MutexLock lock(&mutex_);
    return now_;
  }
  void Advance(absl::Duration by) {
    MutexLock lock(&mutex_);
    now_ += by;
  }

 private:
  mutable Mutex mutex_;
  Instant now_ ABSL_GUARDED_BY(mutex_) = absl::UnixEpoch();
};

struct FakeSessionCall final : SessionCall {
  void ReadNext() override { ++reads; }
  void Send(const SessionMessage& message) override { sent.push_back(message); }
  void Cut() override { ++cuts; }
  void End(const absl::Status& status) override { ended = status; }

  int reads = 0;
  int cuts = 0;
  std::vector<SessionMessage> sent;
  std::optional<absl::Status> ended;
};

struct FakePushCall final : PushCall {
  void ReadHeader() override { ++header_reads; }
  void ReceivePayload(std::shared_ptr<PayloadPart> sink) override { part = std::move(sink); }
  void Answer(PushOutcome answer, const std::string& why, bool again) override {
    outcome = answer;
    reason = why;
    replayed = again;
  }
  void End(const absl::Status& status) override { ended = status; }

  int header_reads = 0;
  std::shared_ptr<PayloadPart> part;
  std::optional<PushOutcome> outcome;
  std::string reason;
  bool replayed = false;
  std::optional<absl::Status> ended;
};

struct FakePullCall final : PullCall {
  void Send(PullAnswer served, std::shared_ptr<std::atomic<std::uint64_t>> bytes_moved) override {
    answer = std::move(served);
    moved = std::move(bytes_moved);
  }
  void Cut() override { ++cuts; }
  void End(const absl::Status& status) override { ended = status; }

  std::optional<PullAnswer> answer;
  std::shared_ptr<std::atomic<std::uint64_t>> moved;
  int cuts = 0;
  std::optional<absl::Status> ended;
};

struct FakePushStatusCall final : PushStatusCall {
  void Answer(const AnswerPushStatus& status, const std::vector<ByteRange>& ranges) override {
    answer = status;
    missing = ranges;
  }
  void End(const absl::Status& status) override { ended = status; }

  std::optional<AnswerPushStatus> answer;
  std::vector<ByteRange> missing;
  std::optional<absl::Status> ended;
};

// Waits for its answer across threads.
class FakeStatusCall final : public StatusCall {
 public:
  void Answer(const ServerStatus& status) override {
    MutexLock lock(&mutex_);
    answer_ = status;
    changed_.NotifyAll();
  }
  void End(const absl::Status&) override {}

  ServerStatus Wait() {
    MutexLock lock(&mutex_);
    while (!answer_.has_value()) changed_.Wait(&mutex_);
    return *answer_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::optional<ServerStatus> answer_ ABSL_GUARDED_BY(mutex_);
};

// Keeps one line for each thing it is told. Thread-safe.
class FakeTelemetry final : public Telemetry {
 public:
  void OnDecision(const Decision& decision) override { Add(absl::StrCat("decision ", ReasonName(decision.reason))); }
  void OnRoundCommitted(const RoundCommitted& round) override { Add(absl::StrCat("committed ", round.round)); }
  void OnEvaluation(const EvaluationPoint& point) override { Add(absl::StrCat("evaluation ", point.version)); }
  void OnPushAnswered(absl::string_view outcome) override { Add(absl::StrCat("push ", outcome)); }
  void OnTransfer(Direction direction, std::uint64_t wire_bytes, std::uint64_t raw_bytes, absl::Duration) override {
    Add(absl::StrCat(direction == Direction::kPush ? "pushed " : "pulled ", wire_bytes, "/", raw_bytes));
  }
  void OnCommit(absl::Duration, absl::Duration, const CodingReport& broadcast) override {
    Add(absl::StrCat("commit ", broadcast.values, " values, ", broadcast.bytes, " bytes"));
  }
  void OnCheckpoint(const absl::StatusOr<StoredCheckpoint>& result, absl::Duration) override {
    Add(absl::StrCat("checkpoint ", result.ok() ? result->path : "failed"));
  }
  void OnStorage(StorageTask task, const absl::Status& status, absl::Duration) override {
    if (task == StorageTask::kRecords && status.ok()) return;
    Add(absl::StrCat(task == StorageTask::kRecords ? "storage " : "room ", status.ok() ? "is there" : "failed"));
  }
  void OnStatus(const RunStatus& status) override {
    MutexLock lock(&mutex_);
    told_phase_ = status.phase;
    told_.NotifyAll();
  }
  void OnCallStarted(absl::string_view, absl::string_view) override {}
  void OnCallHandled(absl::string_view, absl::string_view, absl::string_view, absl::Duration) override {}

  std::vector<std::string> lines() {
    MutexLock lock(&mutex_);
    return lines_;
  }
  // Whether OnStatus says `phase` within 10 s.
  bool WaitForPhase(RunPhase phase) {
    MutexLock lock(&mutex_);
    while (told_phase_ != phase) {
      if (!told_.WaitFor(&mutex_, absl::Seconds(10))) return false;
    }
    return true;
  }

 private:
  void Add(std::string line) {
    MutexLock lock(&mutex_);
    lines_.push_back(std::move(line));
  }

  Mutex mutex_;
  CondVar told_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  std::optional<RunPhase> told_phase_ ABSL_GUARDED_BY(mutex_);
};

// Plain memory that counts the payloads that have arrived.
class CountingMemory final : public PayloadMemory {
 public:
  CountingMemory(std::unique_ptr<PayloadMemory> memory, std::atomic<int>* arrivals)
      : memory_(std::move(memory)), arrivals_(arrivals) {}
  std::span<const std::byte> bytes() const override { return memory_->bytes(); }
  absl::Status Write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    return memory_->Write(offset, bytes);
  }
  void Arrived() override { ++*arrivals_; }

 private:
  const std::unique_ptr<PayloadMemory> memory_;
  std::atomic<int>* const arrivals_;
};

// Keeps what it is given and never says that it is stored; payloads lie in plain memory.
struct FakeRecordStore final : RecordStore {
  absl::StatusOr<std::unique_ptr<PayloadMemory>> Reserve(std::uint64_t bytes) override {
    if (!full.ok()) return full;
    AUTOLOCO_ASSIGN_OR_RETURN(std::unique_ptr<PayloadMemory> memory, AllocatePayloadMemory(bytes));
    return std::make_unique<CountingMemory>(std::move(memory), &arrivals);
  }
  void Store(RecordBatch batch) override { batches.push_back(std::move(batch)); }
  void DropSpooled(const PushKey& push) override { dropped.push_back(push); }
  void DropSpooledBefore(Round round) override { dropped_before = round; }

  absl::Status full;             // what Reserve says
  std::atomic<int> arrivals{0};  // payloads whose bytes are all there
  std::vector<RecordBatch> batches;
  std::vector<PushKey> dropped;
  std::optional<Round> dropped_before;
};

// Copies what it is given, or fails when told to.
struct FakeCheckpointStore final : CheckpointStore {
  absl::StatusOr<StoredCheckpoint> Write(const CheckpointContent& content) override {
    if (!failure.ok()) return failure;
    version = content.snapshot.version;
    params_digest = content.params_digest;
    view_digest = content.view_digest;
    params.clear();
    momentum.clear();
    view.clear();
    for (std::size_t block = 0; block < content.vectors->block_count(); ++block) {
      const CheckpointReader::Vectors values = content.vectors->Next();
      params.insert(params.end(), values.params.begin(), values.params.end());
      momentum.insert(momentum.end(), values.momentum.begin(), values.momentum.end());
      view.insert(view.end(), values.view.begin(), values.view.end());
      if (between_blocks) between_blocks();
    }
    return StoredCheckpoint{absl::StrCat("/checkpoints/", version), params.size() * sizeof(float)};
  }

  absl::Status failure;
  std::function<void()> between_blocks;  // called while a checkpoint is being written
  Version version = 0;
  std::string params_digest;
  std::vector<float> params;
  std::vector<float> momentum;
  std::vector<float> view;
  std::string view_digest;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_TESTS_SUPPORT_RUNTIME_FAKES_H_
