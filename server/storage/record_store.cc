#include "server/storage/record_store.h"

#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace autoloco::server {
namespace {

// Trouble of the disk is not the worker's to settle: it comes back later.
absl::Status ForWorker(absl::string_view what, const absl::Status& status) {
  if (status.ok()) return status;
  const std::string text = absl::StrCat(what, ": ", status.message());
  return absl::IsResourceExhausted(status) ? absl::ResourceExhaustedError(text) : absl::UnavailableError(text);
}

// A file of the spool as the runtime sees it.
class SpooledMemory final : public PayloadMemory {
 public:
  explicit SpooledMemory(std::unique_ptr<SpoolFile> file) : file_(std::move(file)) {}
  std::span<const std::byte> bytes() const override { return file_->bytes(); }
  absl::Status Write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    return ForWorker("cannot write a delta", file_->Write(offset, bytes));
  }
  void Arrived() override { file_->StartWriting(); }
  SpoolFile* file() { return file_.get(); }

 private:
  const std::unique_ptr<SpoolFile> file_;
};

}  // namespace

DurableRecordStore::DurableRecordStore(const Tools& tools, const Settings& settings)
    : tools_(tools), settings_(settings), thread_(&DurableRecordStore::Run, this) {}

DurableRecordStore::~DurableRecordStore() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

absl::StatusOr<std::unique_ptr<PayloadMemory>> DurableRecordStore::Reserve(std::uint64_t bytes) {
  absl::StatusOr<std::unique_ptr<SpoolFile>> file = tools_.spool->Create(bytes);
  TellRoom(bytes, file.status());
  if (file.ok()) return std::make_unique<SpooledMemory>(*std::move(file));
  return ForWorker(absl::StrCat("no room for a delta of ", bytes, " bytes"), file.status());
}

void DurableRecordStore::TellRoom(std::uint64_t bytes, const absl::Status& status) {
  const Instant now = tools_.clock->Now();
  MutexLock lock(&mutex_);
  if (status.ok() && !no_room_) return;
  tools_.telemetry->OnStorage(StorageTask::kRoom, status, absl::ZeroDuration());
  if (status.ok()) {
    no_room_.reset();
    tools_.inbox->Post(StorageTrouble{StorageTask::kRoom, status});
    return;
  }
  if (!no_room_) {
    no_room_.emplace();
    no_room_->since = now;
  }
  no_room_->bytes = bytes;
  no_room_->try_at = now + settings_.retry_every;
  if (now - no_room_->since < settings_.retry_for) {
    tools_.inbox->Post(StorageTrouble{StorageTask::kRoom, status});
  } else if (!std::exchange(no_room_->gave_up, true)) {
    tools_.inbox->Post(StorageGaveUp{StorageTask::kRoom, status});
  }
  changed_.NotifyAll();
}

void DurableRecordStore::Do(const TryRoom& job) { TellRoom(job.bytes, tools_.spool->Create(job.bytes).status()); }

void DurableRecordStore::Store(RecordBatch batch) { Post(std::move(batch)); }

void DurableRecordStore::DropSpooled(const PushKey& push) { Post(DropKey{push}); }

void DurableRecordStore::DropSpooledBefore(Round round) { Post(DropRounds{round}); }

void DurableRecordStore::Post(Job job) {
  MutexLock lock(&mutex_);
  jobs_.push_back(std::move(job));
  changed_.NotifyAll();
}

void DurableRecordStore::Run() {
  while (const std::optional<Job> job = Take()) {
    if (!gave_up_) std::visit([this](const auto& one) { Do(one); }, *job);
  }
}

std::optional<DurableRecordStore::Job> DurableRecordStore::Take() {
  MutexLock lock(&mutex_);
  while (jobs_.empty() && !stopping_) {
    if (!no_room_) {
      changed_.Wait(&mutex_);
      continue;
    }
    const absl::Duration left = no_room_->try_at - tools_.clock->Now();
    if (left <= absl::ZeroDuration()) return TryRoom{no_room_->bytes};
    changed_.WaitFor(&mutex_, left);
  }
  if (jobs_.empty()) return std::nullopt;
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  auto* const batch = std::get_if<RecordBatch>(&job);
  while (batch != nullptr && !jobs_.empty() && std::holds_alternative<RecordBatch>(jobs_.front())) {
    RecordBatch& next = std::get<RecordBatch>(jobs_.front());
    batch->sequence = next.sequence;
    std::move(next.records.begin(), next.records.end(), std::back_inserter(batch->records));
    std::move(next.payloads.begin(), next.payloads.end(), std::back_inserter(batch->payloads));
    jobs_.pop_front();
  }
  return job;
}

void DurableRecordStore::Do(const RecordBatch& batch) {
  const Instant first = tools_.clock->Now();
  for (bool failed = false;; failed = true) {
    const Instant start = tools_.clock->Now();
    const absl::Status status = Write(batch);
    const Instant end = tools_.clock->Now();
    tools_.telemetry->OnStorage(StorageTask::kRecords, status, end - start);
    if (status.ok()) {
      if (failed) tools_.inbox->Post(StorageTrouble{StorageTask::kRecords, absl::OkStatus()});
      tools_.inbox->Post(RecordsStored{batch.sequence});
      return;
    }
    if (end - first >= settings_.retry_for) {
      gave_up_ = true;
      tools_.inbox->Post(StorageGaveUp{StorageTask::kRecords, status});
      return;
    }
    tools_.inbox->Post(StorageTrouble{StorageTask::kRecords, status});
    if (!WaitForRetry()) return;
  }
}

absl::Status DurableRecordStore::Write(const RecordBatch& batch) {
  std::vector<Spool::Acceptance> files;
  for (const KeptPayload& accepted : batch.payloads) {
    files.push_back({accepted.key, static_cast<SpooledMemory*>(accepted.payload->memory())->file()});
  }
  AUTOLOCO_RETURN_IF_ERROR(tools_.spool->Accept(files));
  return tools_.database->Store(batch.records);
}

bool DurableRecordStore::WaitForRetry() {
  const Instant until = tools_.clock->Now() + settings_.retry_every;
  MutexLock lock(&mutex_);
  while (!stopping_) {
    const absl::Duration left = until - tools_.clock->Now();
    if (left <= absl::ZeroDuration()) return true;
    changed_.WaitFor(&mutex_, left);
  }
  return false;
}

void DurableRecordStore::Warn(const absl::Status& status) {
  if (!status.ok()) Log(LogLevel::kWarning, "payload_not_dropped").Add("error", std::string(status.message()));
}

}  // namespace autoloco::server
