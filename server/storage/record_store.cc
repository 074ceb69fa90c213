#include "server/storage/record_store.h"

#include <atomic>
#include <cstdint>
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

// The disk is told to begin each time that so much has come in.
constexpr std::uint64_t kBeginBytes = 8 * 1024 * 1024;

// A file of the spool as the runtime sees it.
class SpooledMemory final : public PayloadMemory {
 public:
  SpooledMemory(std::unique_ptr<SpoolFile> file, std::shared_ptr<DurableRecordStore::Link> link)
      : file_(std::move(file)), link_(std::move(link)) {}
  ~SpooledMemory() override {
    if (!file_->accepted()) return;
    WithStore([this](DurableRecordStore* store) { store->LetGo(std::move(file_)); });
  }
  std::span<const std::byte> bytes() const override { return file_->bytes(); }
  absl::Status Write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    const absl::Status status = file_->Write(offset, bytes);
    if (!status.ok()) {
      WithStore([&](DurableRecordStore* store) { store->TellWriteFailed(file_->bytes().size(), status); });
      return ForWorker("cannot write a delta", status);
    }
    const std::uint64_t before = written_.fetch_add(bytes.size(), std::memory_order_relaxed);
    if (before / kBeginBytes != (before + bytes.size()) / kBeginBytes) Arrived();
    return absl::OkStatus();
  }
  void Arrived() override {
    WithStore([this](DurableRecordStore* store) { store->StartWriting(file_); });
  }
  SpoolFile* file() { return file_.get(); }

 private:
  template <typename Use>
  void WithStore(const Use& use) {
    MutexLock lock(&link_->mutex);
    if (link_->store != nullptr) use(link_->store);
  }

  std::shared_ptr<SpoolFile> file_;
  const std::shared_ptr<DurableRecordStore::Link> link_;
  std::atomic<std::uint64_t> written_{0};
};

}  // namespace

DurableRecordStore::DurableRecordStore(const Tools& tools, const Settings& settings)
    : tools_(tools), settings_(settings), thread_(&DurableRecordStore::Run, this) {
  MutexLock lock(&link_->mutex);
  link_->store = this;
}

DurableRecordStore::~DurableRecordStore() {
  {
    MutexLock lock(&link_->mutex);
    link_->store = nullptr;
  }
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
  if (file.ok()) return std::make_unique<SpooledMemory>(*std::move(file), link_);
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

void DurableRecordStore::StartWriting(std::weak_ptr<SpoolFile> file) { PostIdle(BeginFile{std::move(file)}); }

void DurableRecordStore::LetGo(std::shared_ptr<SpoolFile> file) { PostIdle(CloseFile{std::move(file)}); }

void DurableRecordStore::PostIdle(Job job) {
  MutexLock lock(&mutex_);
  idle_jobs_.push_back(std::move(job));
  changed_.NotifyAll();
}

std::optional<DurableRecordStore::Job> DurableRecordStore::Take() {
  MutexLock lock(&mutex_);
  while (jobs_.empty() && !stopping_) {
    if (!idle_jobs_.empty()) {
      Job job = std::move(idle_jobs_.front());
      idle_jobs_.pop_front();
      return job;
    }
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
