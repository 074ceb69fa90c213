// The storage thread: makes the core's records and the payloads they name durable, in order, many steps at a time.
//
// Whatever has been asked for while the disk was busy goes into one transaction (group commit): the payload files
// first, then the records. A worker waits for two or three fsyncs, not for those of everyone before it. While it has
// nothing else to do it lets the disk begin with the bytes of payloads that are still coming in.
#ifndef AUTOLOCO_SERVER_STORAGE_RECORD_STORE_H_
#define AUTOLOCO_SERVER_STORAGE_RECORD_STORE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "server/runtime/inbox.h"
#include "server/runtime/ports.h"
#include "server/storage/spool.h"
#include "server/storage/state_database.h"

namespace autoloco::server {

// Thread-safe.
class DurableRecordStore final : public RecordStore {
 public:
  // All borrowed; must outlive the store. The database is the storage thread's from here on.
  struct Tools {
    const Clock* clock = nullptr;
    StateDatabase* database = nullptr;
    Spool* spool = nullptr;
    Telemetry* telemetry = nullptr;
    Inbox* inbox = nullptr;  // RecordsStored, StorageTrouble and StorageGaveUp go there
  };
  struct Settings {
    absl::Duration retry_every = absl::Seconds(1);
    absl::Duration retry_for = absl::Minutes(10);  // afterwards it gives up
  };

  // Starts the thread.
  DurableRecordStore(const Tools& tools, const Settings& settings);
  // Stores what was asked for before, trying once, and joins.
  ~DurableRecordStore() override;

  // Besides RecordStore's: UNAVAILABLE when the folder cannot be used. While there is no room, the storage thread looks
  // for it again by itself: the trouble ends, or the store gives up, whether or not the worker comes back.
  absl::StatusOr<std::unique_ptr<PayloadMemory>> Reserve(std::uint64_t bytes) override;
  void Store(RecordBatch batch) override;
  void DropSpooled(const PushKey& push) override;
  void DropSpooledBefore(Round round) override;

  // Any thread. There are bytes in the file that the disk may begin with, unless it goes first.
  void StartWriting(std::weak_ptr<SpoolFile> file);
  // Any thread. Lets go of an accepted file, which takes a while where it is large.
  void LetGo(std::shared_ptr<SpoolFile> file);
  // Any thread: bytes of a payload could not be written.
  void TellWriteFailed(std::uint64_t bytes, const absl::Status& status) { TellRoom(bytes, status); }

  // How payloads, which may outlive the store, speak to it.
  struct Link {
    Mutex mutex;
    DurableRecordStore* store ABSL_GUARDED_BY(mutex) = nullptr;  // null: it is gone
  };

 private:
  struct DropKey {
    PushKey key;
  };
  struct DropRounds {
    Round before = 0;
  };
  struct TryRoom {
    std::uint64_t bytes = 0;
  };
  struct BeginFile {
    std::weak_ptr<SpoolFile> file;
  };
  struct CloseFile {
    std::shared_ptr<SpoolFile> file;
  };
  using Job = std::variant<RecordBatch, DropKey, DropRounds, TryRoom, BeginFile, CloseFile>;

  // That room for a payload cannot be had.
  struct NoRoom {
    std::uint64_t bytes = 0;  // asked for last
    Instant since;
    Instant try_at;  // next
    bool gave_up = false;
  };

  void Post(Job job);
  void Run();
  // The next drop, or all batches up to the next drop as one, or with nothing else to do a file to begin with or to let
  // go of, or a look for room; empty: stopping, and nothing is left.
  std::optional<Job> Take();
  void Do(const RecordBatch& batch);
  void Do(const DropKey& job) { Warn(tools_.spool->Drop(job.key)); }
  void Do(const DropRounds& job) { Warn(tools_.spool->DropBefore(job.before)); }
  void Do(const TryRoom& job);
  void Do(const BeginFile& job) {
    if (const std::shared_ptr<SpoolFile> file = job.file.lock()) file->StartWriting();
  }
  void Do(const CloseFile&) {}  // the job was its last owner
  void PostIdle(Job job);
  static void Warn(const absl::Status& status);
  // An attempt to take room has come out like this. Any thread.
  void TellRoom(std::uint64_t bytes, const absl::Status& status);
  absl::Status Write(const RecordBatch& batch);
  // False: the store is being closed.
  bool WaitForRetry();

  const Tools tools_;
  const Settings settings_;
  const std::shared_ptr<Link> link_ = std::make_shared<Link>();

  Mutex mutex_;
  CondVar changed_;
  std::deque<Job> jobs_ ABSL_GUARDED_BY(mutex_);
  std::deque<Job> idle_jobs_ ABSL_GUARDED_BY(mutex_);  // done when there are no others
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<NoRoom> no_room_ ABSL_GUARDED_BY(mutex_);
  bool gave_up_ = false;  // the storage thread's

  std::thread thread_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_RECORD_STORE_H_
